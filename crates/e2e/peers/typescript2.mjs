// Drives a server through the official TypeScript SDK, generation 2: one JSON line for each step, no judgement.
//
//     node typescript2.mjs PLAN
//
// The plan is JSON: `url` and `token`, or `command`, `folder` and `variables`; `mode`, how the revision is agreed on; and
// `steps`, each a list of a name and what it needs. Packages are those of the folder in which it is started.
import { createRequire } from 'node:module';

const require = createRequire(`${process.cwd()}/`);
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const plan = JSON.parse(process.argv[2]);
const say = (step, fact) => console.log(JSON.stringify({ step, ...fact }));

async function tell(step, act) {
    try {
        say(step, await act());
        return true;
    } catch (error) {
        say(step, { error: { code: error.code, message: error.message } });
        return false;
    }
}

const transport = plan.url
    ? new StreamableHTTPClientTransport(new URL(plan.url), {
          requestInit: { headers: { authorization: `Bearer ${plan.token}` } },
      })
    : new StdioClientTransport({
          command: plan.command[0],
          args: plan.command.slice(1),
          cwd: plan.folder,
          env: plan.variables,
      });
const client = new Client({ name: 'peer', version: '1' }, { capabilities: {}, versionNegotiation: { mode: plan.mode } });
const outcome = (result) => ({
    error_of_tool: result.isError ?? false,
    text: result.content[0]?.text,
    structured: result.structuredContent,
});

const acts = {
    tools: async () => ({ names: (await client.listTools()).tools.map((tool) => tool.name) }),
    ping: async () => ({ answer: await client.ping() }),
    call: async (name, given) => outcome(await client.callTool({ name, arguments: given })),
    watch: async (name, given) =>
        outcome(
            await client.callTool({ name, arguments: given }, {
                onprogress: ({ progress, message }) => say('progress', { progress, message }),
            }),
        ),
};

const connected = await tell('connect', async () => {
    await client.connect(transport);
    return {
        revision: client.getNegotiatedProtocolVersion(),
        session: transport.sessionId,
        server: client.getServerVersion()?.name,
    };
});
if (connected) {
    for (const [step, ...given] of plan.steps) {
        await tell(step, () => acts[step](...given));
    }
}
await tell('close', async () => {
    if (connected && plan.url && transport.sessionId) await transport.terminateSession();
    await client.close();
});
