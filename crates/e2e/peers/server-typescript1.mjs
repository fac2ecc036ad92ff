// A server on the official TypeScript SDK, generation 1, for what is behind the gate.
//
//     node server-typescript1.mjs http|sse|stdio
//
// Over HTTP it listens on a port that is free and says where, in a line of JSON: `{"url": …}`. All servers here offer the
// same: tools `echo`, `add`, `count`, `ask`, `wait` and `waited`, a resource, a template and a prompt. Packages are those of the folder in
// which it is started.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const require = createRequire(`${process.cwd()}/`);
const { McpServer, ResourceTemplate } = require('@modelcontextprotocol/sdk/server/mcp.js');
const { SSEServerTransport } = require('@modelcontextprotocol/sdk/server/sse.js');
const { StdioServerTransport } = require('@modelcontextprotocol/sdk/server/stdio.js');
const { StreamableHTTPServerTransport } = require('@modelcontextprotocol/sdk/server/streamableHttp.js');
const { completable } = require('@modelcontextprotocol/sdk/server/completable.js');
const { z } = require('zod');

// What `waited` waits for: that a call of `wait` was cancelled.
let called_off;
const waited = new Promise((resolve) => (called_off = resolve));

function make() {
    const server = new McpServer({ name: 'typescript1', version: '1' });
    const text = (text) => ({ content: [{ type: 'text', text }] });
    server.registerTool('echo', { description: 'Says it again.', inputSchema: { text: z.string() } }, ({ text: said }) =>
        text(said),
    );
    server.registerTool(
        'add',
        {
            description: 'Adds two numbers.',
            inputSchema: { a: z.number(), b: z.number() },
            outputSchema: { sum: z.number() },
            annotations: { readOnlyHint: true },
        },
        ({ a, b }) => ({ ...text(`${a + b}`), structuredContent: { sum: a + b } }),
    );
    server.registerTool(
        'count',
        { description: 'Counts, and reports each number.', inputSchema: { to: z.number().int() } },
        async ({ to }, { _meta, sendNotification }) => {
            for (let progress = 1; progress <= to; progress++) {
                if (_meta?.progressToken !== undefined) {
                    await sendNotification({
                        method: 'notifications/progress',
                        params: { progressToken: _meta.progressToken, progress, total: to, message: `at ${progress}` },
                    });
                }
            }
            return text(`counted to ${to}`);
        },
    );
    server.registerTool(
        'ask',
        { description: 'Asks for a name.', inputSchema: {} },
        async () => {
            const answer = await server.server.elicitInput({
                message: 'who is there?',
                requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
            });
            return text(answer.action === 'accept' ? `hello ${answer.content.name}` : answer.action);
        },
    );
    server.registerTool(
        'wait',
        { description: 'Waits until it is cancelled.', inputSchema: {} },
        async (_, { _meta, sendNotification, signal }) => {
            // A cancellation may come as soon as something was reported.
            const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
            if (_meta?.progressToken !== undefined) {
                await sendNotification({
                    method: 'notifications/progress',
                    params: { progressToken: _meta.progressToken, progress: 1 },
                });
            }
            await aborted;
            called_off();
            return text('cancelled');
        },
    );
    server.registerTool('waited', { description: 'Waits until a call was cancelled.', inputSchema: {} }, async () => {
        await waited;
        return text('one was cancelled');
    });
    server.registerResource('one', 'note://one', { mimeType: 'text/plain' }, (uri) => ({
        contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'the first note' }],
    }));
    server.registerResource('notes', new ResourceTemplate('note://by/{name}', { list: undefined }), {}, (uri, { name }) => ({
        contents: [{ uri: uri.href, text: `a note by ${name}` }],
    }));
    server.registerPrompt('greet', { description: 'A greeting.', argsSchema: { name: completable(z.string(), (begun) => [`${begun}1`, `${begun}2`]) } }, ({ name }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `greet ${name}` } }],
    }));
    return server;
}

async function body(request) {
    const parts = [];
    for await (const part of request) parts.push(part);
    return parts.length ? JSON.parse(Buffer.concat(parts).toString()) : undefined;
}

const sessions = new Map();

async function streamable(request, response) {
    const said = request.method === 'POST' ? await body(request) : undefined;
    const id = request.headers['mcp-session-id'];
    let transport = sessions.get(id);
    if (!transport) {
        if (id || said?.method !== 'initialize') {
            response.writeHead(id ? 404 : 400).end();
            return;
        }
        transport = new StreamableHTTPServerTransport({
            sessionIdGenerator: randomUUID,
            onsessioninitialized: (id) => sessions.set(id, transport),
        });
        transport.onclose = () => sessions.delete(transport.sessionId);
        await make().connect(transport);
    }
    await transport.handleRequest(request, response, said);
}

async function old(request, response) {
    const url = new URL(request.url, 'http://here');
    if (request.method === 'GET' && url.pathname === '/sse') {
        const transport = new SSEServerTransport('/messages', response);
        sessions.set(transport.sessionId, transport);
        transport.onclose = () => sessions.delete(transport.sessionId);
        await make().connect(transport);
        return;
    }
    const transport = sessions.get(url.searchParams.get('sessionId'));
    if (request.method !== 'POST' || !transport) {
        response.writeHead(404).end();
        return;
    }
    await transport.handlePostMessage(request, response, await body(request));
}

const way = process.argv[2];
if (way === 'stdio') {
    await make().connect(new StdioServerTransport());
} else {
    const [serve, path] = way === 'sse' ? [old, '/sse'] : [streamable, '/mcp'];
    const http = createServer((request, response) => {
        serve(request, response).catch((error) => {
            console.error(error);
            response.destroy();
        });
    });
    http.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ url: `http://127.0.0.1:${http.address().port}${path}` })));
}
