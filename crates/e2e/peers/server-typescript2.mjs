// A server on the official TypeScript SDK, generation 2, which speaks both eras, for what is behind the gate.
//
//     node server-typescript2.mjs http|modern|stdio
//
// Over HTTP it listens on a port that is free and says where, in a line of JSON: `{"url": …}`; `modern` refuses the legacy
// era. It offers what `server-typescript1.mjs` offers. Packages are those of the folder in which it is
// started.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const require = createRequire(`${process.cwd()}/`);
const {
    McpServer,
    ResourceTemplate,
    acceptedContent,
    completable,
    createMcpHandler,
    inputRequired,
} = require('@modelcontextprotocol/server');
const { serveStdio } = require('@modelcontextprotocol/server/stdio');
const { toNodeHandler } = require('@modelcontextprotocol/node');
const { z } = require('zod');

// What `waited` waits for: that a call of `wait` was cancelled.
let called_off;
const waited = new Promise((resolve) => (called_off = resolve));

function make() {
    const server = new McpServer({ name: 'typescript2', version: '1' });
    const text = (text) => ({ content: [{ type: 'text', text }] });
    server.registerTool(
        'echo',
        { description: 'Says it again.', inputSchema: z.object({ text: z.string() }) },
        ({ text: said }) => text(said),
    );
    server.registerTool(
        'add',
        {
            description: 'Adds two numbers.',
            inputSchema: z.object({ a: z.number(), b: z.number() }),
            outputSchema: z.object({ sum: z.number() }),
            annotations: { readOnlyHint: true },
        },
        ({ a, b }) => ({ ...text(`${a + b}`), structuredContent: { sum: a + b } }),
    );
    server.registerTool(
        'count',
        { description: 'Counts, and reports each number.', inputSchema: z.object({ to: z.number().int() }) },
        async ({ to }, { mcpReq }) => {
            const progressToken = mcpReq._meta?.progressToken;
            for (let progress = 1; progress <= to; progress++) {
                if (progressToken !== undefined) {
                    await mcpReq.notify({
                        method: 'notifications/progress',
                        params: { progressToken, progress, total: to, message: `at ${progress}` },
                    });
                }
            }
            return text(`counted to ${to}`);
        },
    );
    const Name = z.object({ name: z.string() });
    server.registerTool('ask', { description: 'Asks for a name.', inputSchema: z.object({}) }, (_, { mcpReq }) => {
        const answer = acceptedContent(mcpReq.inputResponses, 'name', Name);
        if (answer) return text(`hello ${answer.name}`);
        return inputRequired({
            inputRequests: { name: inputRequired.elicit({ message: 'who is there?', requestedSchema: Name }) },
        });
    });
    server.registerTool(
        'wait',
        { description: 'Waits until it is cancelled.', inputSchema: z.object({}) },
        async (_, { mcpReq }) => {
            // A cancellation may come as soon as something was reported.
            const aborted = new Promise((resolve) => mcpReq.signal.addEventListener('abort', resolve));
            const progressToken = mcpReq._meta?.progressToken;
            if (progressToken !== undefined) {
                await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
            }
            await aborted;
            called_off();
            return text('cancelled');
        },
    );
    server.registerTool(
        'waited',
        { description: 'Waits until a call was cancelled.', inputSchema: z.object({}) },
        async () => {
            await waited;
            return text('one was cancelled');
        },
    );
    server.registerResource('one', 'note://one', { mimeType: 'text/plain' }, (uri) => ({
        contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'the first note' }],
    }));
    server.registerResource('notes', new ResourceTemplate('note://by/{name}', { list: undefined }), {}, (uri, { name }) => ({
        contents: [{ uri: uri.href, text: `a note by ${name}` }],
    }));
    server.registerPrompt('greet', { description: 'A greeting.', argsSchema: z.object({ name: completable(z.string(), (begun) => [`${begun}1`, `${begun}2`]) }) }, ({ name }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `greet ${name}` } }],
    }));
    return server;
}

const way = process.argv[2];
if (way === 'stdio') {
    await serveStdio(make);
} else {
    const handler = toNodeHandler(createMcpHandler(make, { legacy: way === 'modern' ? 'reject' : 'stateless' }));
    const http = createServer((request, response) => {
        if (new URL(request.url, 'http://here').pathname === '/mcp') {
            handler(request, response);
        } else {
            response.writeHead(404).end();
        }
    });
    http.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ url: `http://127.0.0.1:${http.address().port}/mcp` })));
}
