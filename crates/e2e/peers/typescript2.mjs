// Drives a server through the official TypeScript SDK, generation 2: one JSON line for each step, no judgement.
//
//     node typescript2.mjs PLAN
//
// The plan is JSON: `url` and `token`, or `command`, `folder` and `variables`; `mode`, how the revision is agreed on; and
// `steps`, each a list of a name and what it needs. Or it has `cells`, which are such plans, one after the other; `answer` is
// what a form is answered with, where the client can be asked. Packages are those of the folder in which it is started.
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

async function walk(plan) {
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
    const client = new Client(
        { name: 'peer', version: '1' },
        { capabilities: plan.answer ? { elicitation: { form: {} } } : {}, versionNegotiation: { mode: plan.mode } },
    );
    if (plan.answer) {
        client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: plan.answer }));
    }
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
        read: async (uri) => ({ text: (await client.readResource({ uri })).contents[0].text }),
        prompt: async (name, given) => ({
            text: (await client.getPrompt({ name, arguments: given })).messages[0].content.text,
        }),
        complete: async (ref, name, value) => ({
            values: (await client.complete({ ref, argument: { name, value } })).completion.values,
        }),
        // Gives the call up as soon as it is known to run.
        cancel: async (name, given) => {
            const giving_up = new AbortController();
            const options = { signal: giving_up.signal, onprogress: () => giving_up.abort() };
            try {
                await client.callTool({ name, arguments: given }, options);
                return { cancelled: false };
            } catch (error) {
                if (!giving_up.signal.aborted) throw error;
                return { cancelled: true };
            }
        },
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
}

for (const cell of plan.cells ?? [plan]) {
    await walk(cell);
}
