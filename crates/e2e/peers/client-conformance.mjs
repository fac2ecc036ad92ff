// What the official conformance suite runs as the client under test: the gate, in front of the suite's server as a developer
// starts it, with the official TypeScript SDK, generation 2, as its client on standard input and output.
//
//     node client-conformance.mjs URL
//
// The suite says in variables which scenario it is. `TOLLHOUSE` is the gate's binary, `STATE` a folder in which it may keep
// its state. Packages are those of the folder in which it is started.
import { mkdtempSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(`${process.cwd()}/`);
const { Client } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const { TOLLHOUSE, STATE, MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context } = process.env;
const networks = ['127.0.0.0/8', '::1/128'].flatMap((network) => ['--network', network]);
const state = mkdtempSync(join(STATE, 'connect-'));
const transport = new StdioClientTransport({
    command: TOLLHOUSE,
    args: ['connect', '--state', state, ...networks, process.argv[2]],
    env: {},
});
const client = new Client(
    { name: 'peer', version: '1' },
    {
        capabilities: { elicitation: { form: { applyDefaults: true } }, sampling: {}, roots: {} },
        versionNegotiation: { mode: 'auto' },
    },
);
client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: scenario.startsWith('sep-2322') ? { confirmed: true } : {} }));

const tools = async () => (await client.listTools()).tools;
const call = (name, given = {}) => client.callTool({ name, arguments: given });
// Calls every tool with something of the right kind for each argument.
const some = { string: 'x', integer: 1, number: 1, boolean: true, array: [], object: {}, null: null };
const callAll = async () => {
    for (const { name, inputSchema } of await tools()) {
        const given = Object.entries(inputSchema.properties ?? {}).map(([key, { type }]) => [key, some[type]]);
        await call(name, Object.fromEntries(given)).catch(() => {});
    }
};

const acts = {
    initialize: tools,
    tools_call: () => call('add_numbers', { a: 5, b: 3 }),
    'elicitation-sep1034-client-defaults': () => call('test_client_elicitation_defaults'),
    'sse-retry': () => call('test_reconnection'),
    'request-metadata': callAll,
    'sep-2322-client-request-state': async () => {
        await call('test_mrtr_echo_state');
        await call('test_mrtr_unrelated');
        await call('test_mrtr_no_state');
        await call('test_mrtr_no_result_type');
    },
    'http-standard-headers': async () => {
        await callAll();
        for (const { uri } of (await client.listResources()).resources) {
            await client.readResource({ uri });
        }
        for (const { name } of (await client.listPrompts()).prompts) {
            await client.getPrompt({ name });
        }
    },
    'http-custom-headers': async () => {
        for (const { name, arguments: given } of JSON.parse(context).toolCalls) {
            await call(name, given);
        }
    },
    'http-invalid-tool-headers': callAll,
    'json-schema-ref-no-deref': tools,
    'json-schema-2020-12-preservation': async () => {
        const focal = (await tools()).find(({ name }) => name === 'json_schema_2020_12_tool');
        await call('json_schema_echo', { schema: focal.inputSchema });
    },
};

await client.connect(transport);
await acts[scenario]();
await client.close();
