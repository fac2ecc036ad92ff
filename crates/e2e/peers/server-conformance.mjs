// A server for the official conformance suite, on the official TypeScript SDK, generation 2, which speaks both eras. It has
// what the suite calls by names of its own, as far as each scenario describes it.
//
//     node server-conformance.mjs http
//
// It listens on a port that is free and says where, in a line of JSON: `{"url": …}`. Packages are those of the folder in
// which it is started.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const require = createRequire(`${process.cwd()}/`);
const {
    McpServer,
    ResourceTemplate,
    acceptedContent,
    completable,
    createMcpHandler,
    createRequestStateCodec,
    fromJsonSchema,
    inputRequired,
    isLegacyRequest,
} = require('@modelcontextprotocol/server');
const { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } = require('@modelcontextprotocol/node');
const { z } = require('zod');

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const SOUND = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=';
const image = { type: 'image', data: PIXEL, mimeType: 'image/png' };
const text = (text) => ({ type: 'text', text });
const embedded = (uri, mimeType, text) => ({ type: 'resource', resource: { uri, mimeType, text } });
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

const states = createRequestStateCodec({ key: new TextEncoder().encode('not a secret, but long enough for the suite') });
const object = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const elicit = (message, properties, required) =>
    inputRequired.elicit({ message, requestedSchema: object(properties, required) });
const sample = (words, maxTokens) =>
    inputRequired.createMessage({ messages: [{ role: 'user', content: text(words) }], maxTokens });
const options = ['option1', 'option2', 'option3'];
const titled = ['First', 'Second', 'Third'].map((title, n) => ({ const: `value${n + 1}`, title: `${title} Option` }));

function make() {
    const server = new McpServer(
        { name: 'conformance', version: '1' },
        {
            capabilities: { logging: {}, resources: { subscribe: true } },
            requestState: { verify: states.verify },
        },
    );
    const tool = (name, content) =>
        server.registerTool(name, { description: `For the suite: ${name}.` }, async () => ({ content }));
    tool('test_simple_text', [text('This is a simple text response for testing.')]);
    tool('test_image_content', [image]);
    tool('test_audio_content', [{ type: 'audio', data: SOUND, mimeType: 'audio/wav' }]);
    tool('test_embedded_resource', [
        embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.'),
    ]);
    tool('test_multiple_content_types', [
        text('Multiple content types test:'),
        image,
        embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ]);
    server.registerTool('test_error_handling', { description: 'For the suite: it fails.' }, async () => {
        throw new Error('This tool intentionally returns an error for testing');
    });
    server.registerTool('test_tool_with_progress', { description: 'For the suite: it takes a while.' }, async ({ mcpReq }) => {
        const progressToken = mcpReq._meta?.progressToken;
        for (const progress of [0, 50, 100]) {
            if (progressToken !== undefined) {
                await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
            }
            await pause();
        }
        return { content: [text('done')] };
    });
    // What asks its client for something before it answers: in the stateless era by its result, in the other by requests.
    const asking = (name, input, asks, answers) =>
        server.registerTool(name, { description: `For the suite: ${name}.`, inputSchema: input }, async (given, context) => {
            const responses = context.mcpReq.inputResponses;
            const wanted = asks(given, context, responses);
            const missing = Object.keys(wanted.inputRequests ?? {}).filter((key) => responses?.[key] === undefined);
            if (missing.length === 0) {
                return { content: [text(await answers(responses, context))] };
            }
            const requestState = wanted.state && (await states.mint(wanted.state, context));
            return inputRequired({ inputRequests: wanted.inputRequests, ...(requestState && { requestState }) });
        });
    const said = (responses) => JSON.stringify(responses);
    const nothing = z.object({});
    asking(
        'test_sampling',
        z.object({ prompt: z.string() }),
        ({ prompt }) => ({ inputRequests: { words: sample(prompt, 100) } }),
        (responses) => `LLM response: ${said(responses.words)}`,
    );
    const user = { username: { type: 'string', description: "User's response" }, email: { type: 'string', description: "User's email address" } };
    asking(
        'test_elicitation',
        z.object({ message: z.string() }),
        ({ message }) => ({ inputRequests: { user: elicit(message, user) } }),
        (responses) => `User response: ${said(responses.user)}`,
    );
    asking(
        'test_elicitation_sep1034_defaults',
        nothing,
        () => ({
            inputRequests: {
                all: elicit(
                    'Defaults of every kind.',
                    {
                        name: { type: 'string', default: 'John Doe' },
                        age: { type: 'integer', default: 30 },
                        score: { type: 'number', default: 95.5 },
                        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
                        verified: { type: 'boolean', default: true },
                    },
                    [],
                ),
            },
        }),
        (responses) => `Elicitation completed: ${said(responses.all)}`,
    );
    asking(
        'test_elicitation_sep1330_enums',
        nothing,
        () => ({
            inputRequests: {
                all: elicit(
                    'Choices of every kind.',
                    {
                        untitledSingle: { type: 'string', enum: options },
                        titledSingle: { type: 'string', oneOf: titled },
                        legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
                        untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
                        titledMulti: { type: 'array', items: { anyOf: titled } },
                    },
                    [],
                ),
            },
        }),
        (responses) => `Elicitation completed: ${said(responses.all)}`,
    );
    const name = { name: { type: 'string' } };
    const userName = () => elicit('What is your name?', name);
    asking(
        'test_input_required_result_elicitation',
        nothing,
        () => ({ inputRequests: { user_name: userName() } }),
        (responses) => `Hello, ${acceptedContent(responses, 'user_name')?.name}!`,
    );
    asking(
        'test_input_required_result_sampling',
        nothing,
        () => ({ inputRequests: { capital_question: sample('What is the capital of France?', 100) } }),
        (responses) => said(responses.capital_question),
    );
    asking(
        'test_input_required_result_list_roots',
        nothing,
        () => ({ inputRequests: { client_roots: inputRequired.listRoots() } }),
        (responses) => said(responses.client_roots),
    );
    const confirm = { inputRequests: { confirm: elicit('Please confirm', { ok: { type: 'boolean' } }) }, state: { step: 'confirm' } };
    const isOk = (_, { mcpReq }) => (mcpReq.requestState()?.step === 'confirm' ? 'state-ok' : 'there is no state');
    asking('test_input_required_result_request_state', nothing, () => confirm, isOk);
    asking('test_input_required_result_tampered_state', nothing, () => confirm, isOk);
    asking(
        'test_input_required_result_multiple_inputs',
        nothing,
        () => ({
            inputRequests: { user_name: userName(), greeting: sample('Generate a greeting', 50), client_roots: inputRequired.listRoots() },
            state: { step: 'all' },
        }),
        (responses) => said(responses),
    );
    asking(
        'test_input_required_result_multi_round',
        nothing,
        (_given, { mcpReq }, responses) =>
            mcpReq.requestState()?.step === undefined && responses?.step1 === undefined
                ? { inputRequests: { step1: elicit('Step 1: What is your name?', name) }, state: { step: 1 } }
                : {
                      inputRequests: { step2: elicit('Step 2: What is your favorite color?', { color: { type: 'string' } }) },
                      state: { step: 2 },
                  },
        (responses) => said(responses),
    );
    const declared = ({ mcpReq }) =>
        mcpReq._meta?.['io.modelcontextprotocol/clientCapabilities'] ?? server.server.getClientCapabilities() ?? {};
    asking(
        'test_input_required_result_capabilities',
        nothing,
        (_given, context) => {
            const { sampling, elicitation } = declared(context);
            return {
                inputRequests: {
                    ...(sampling && { greeting: sample('Generate a greeting', 50) }),
                    ...(elicitation && { user_name: userName() }),
                },
            };
        },
        (responses) => said(responses ?? {}),
    );
    asking(
        'test_streaming_elicitation',
        nothing,
        () => ({ inputRequests: { user_name: userName() } }),
        (responses) => said(responses),
    );
    // The SDK refuses what its client cannot be asked.
    asking(
        'test_missing_capability',
        nothing,
        () => ({ inputRequests: { words: sample('Say something.', 10) } }),
        (responses) => said(responses),
    );
    const logging = (name, words) =>
        server.registerTool(name, { description: `For the suite: ${name}.` }, async ({ mcpReq }) => {
            for (const word of words) {
                await mcpReq.log('info', word);
                await pause();
            }
            return { content: [text('done')] };
        });
    logging('test_tool_with_logging', ['Tool execution started', 'Tool processing data', 'Tool execution completed']);
    logging('test_logging_tool', ['logged']);
    server.registerTool(
        'json_schema_2020_12_tool',
        {
            description: 'Tool with JSON Schema 2020-12 features',
            inputSchema: fromJsonSchema({
                $schema: 'https://json-schema.org/draft/2020-12/schema',
                type: 'object',
                $defs: {
                    address: {
                        $anchor: 'addressDef',
                        type: 'object',
                        properties: { street: { type: 'string' }, city: { type: 'string' } },
                    },
                },
                properties: {
                    name: { type: 'string' },
                    address: { $ref: '#/$defs/address' },
                    contactMethod: { type: 'string', enum: ['phone', 'email'] },
                    phone: { type: 'string' },
                    email: { type: 'string' },
                },
                allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
                if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
                then: { required: ['phone'] },
                else: { required: ['email'] },
                additionalProperties: false,
            }),
        },
        async () => ({ content: [text('it fits')] }),
    );
    server.registerTool(
        'test_headers',
        {
            description: 'For the suite: an argument that is mirrored into a header.',
            inputSchema: fromJsonSchema(object({ region: { type: 'string', 'x-mcp-header': 'Region' } }, [])),
        },
        async ({ region }) => ({ content: [text(`in ${region}`)] }),
    );
    for (const method of ['resources/subscribe', 'resources/unsubscribe']) {
        server.server.setRequestHandler(method, async () => ({}));
    }
    server.registerResource('static-text', 'test://static-text', { mimeType: 'text/plain' }, (uri) => ({
        contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
    }));
    server.registerResource('watched', 'test://watched-resource', { mimeType: 'text/plain' }, (uri) => ({
        contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'This is watched.' }],
    }));
    server.registerResource('static-binary', 'test://static-binary', { mimeType: 'image/png' }, (uri) => ({
        contents: [{ uri: uri.href, mimeType: 'image/png', blob: PIXEL }],
    }));
    server.registerResource(
        'template',
        new ResourceTemplate('test://template/{id}/data', { list: undefined }),
        { mimeType: 'application/json' },
        (uri, { id }) => {
            const data = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
            return { contents: [{ uri: uri.href, mimeType: 'application/json', text: data }] };
        },
    );
    const prompt = (name, argsSchema, messages) =>
        server.registerPrompt(name, { description: `For the suite: ${name}.`, argsSchema }, (given) => ({
            messages: messages(given).map((content) => ({ role: 'user', content })),
        }));
    prompt('test_simple_prompt', undefined, () => [text('This is a simple prompt for testing.')]);
    prompt(
        'test_prompt_with_arguments',
        z.object({ arg1: completable(z.string(), (begun) => [`${begun}1`, `${begun}2`]), arg2: z.string() }),
        ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
    );
    prompt('test_prompt_with_embedded_resource', z.object({ resourceUri: z.string() }), ({ resourceUri }) => [
        embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
        text('Please process the embedded resource above.'),
    ]);
    server.registerPrompt('test_input_required_result_prompt', { description: 'For the suite: it asks first.' }, ({ mcpReq }) => {
        const given = acceptedContent(mcpReq.inputResponses, 'user_context');
        if (given === undefined) {
            return inputRequired({
                inputRequests: { user_context: elicit('What context should the prompt use?', { context: { type: 'string' } }) },
            });
        }
        return { messages: [{ role: 'user', content: text(`In the context of ${given.context}.`) }] };
    });
    prompt('test_prompt_with_image', undefined, () => [image, text('Please analyze the image above.')]);
    return server;
}

// The legacy era has sessions here, so that the server can ask in them; the other is answered for each request alone.
const modern = toNodeHandler(createMcpHandler(make, { legacy: 'reject' }));
const sessions = new Map();

async function legacy(request, response, body) {
    const known = sessions.get(request.headers['mcp-session-id']);
    if (known !== undefined) {
        return known.handleRequest(request, response, body);
    }
    if (request.headers['mcp-session-id'] !== undefined) {
        return response.writeHead(404).end();
    }
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    transport.onclose = () => void sessions.delete(transport.sessionId);
    await make().connect(transport);
    return transport.handleRequest(request, response, body);
}

async function read(request) {
    const chunks = [];
    for await (const chunk of request) {
        chunks.push(chunk);
    }
    try {
        return JSON.parse(Buffer.concat(chunks).toString());
    } catch {
        return undefined;
    }
}

const http = createServer(async (request, response) => {
    if (new URL(request.url, 'http://here').pathname !== '/mcp') {
        return response.writeHead(404).end();
    }
    const body = request.method === 'POST' ? await read(request) : undefined;
    const isLegacy = await isLegacyRequest(await toWebRequest(request, body), body);
    return isLegacy ? legacy(request, response, body) : modern(request, response, body);
});
http.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ url: `http://127.0.0.1:${http.address().port}/mcp` })));
