// A server for the official conformance suite, on the official TypeScript SDK, generation 2, which speaks both eras. It has
// what the suite calls by names of its own, as far as each scenario describes it.
//
//     node server-conformance.mjs http
//
// It listens on a port that is free and says where, in a line of JSON: `{"url": …}`. Packages are those of the folder in
// which it is started.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const require = createRequire(`${process.cwd()}/`);
const { McpServer, ResourceTemplate, completable, createMcpHandler } = require('@modelcontextprotocol/server');
const { toNodeHandler } = require('@modelcontextprotocol/node');
const { z } = require('zod');

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const SOUND = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=';
const image = { type: 'image', data: PIXEL, mimeType: 'image/png' };
const text = (text) => ({ type: 'text', text });
const embedded = (uri, mimeType, text) => ({ type: 'resource', resource: { uri, mimeType, text } });
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

function make() {
    const server = new McpServer({ name: 'conformance', version: '1' });
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
    server.registerResource('static-text', 'test://static-text', { mimeType: 'text/plain' }, (uri) => ({
        contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
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
    prompt('test_prompt_with_image', undefined, () => [image, text('Please analyze the image above.')]);
    return server;
}

const handler = toNodeHandler(createMcpHandler(make, { legacy: 'stateless' }));
const http = createServer((request, response) => {
    if (new URL(request.url, 'http://here').pathname === '/mcp') {
        handler(request, response);
    } else {
        response.writeHead(404).end();
    }
});
http.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ url: `http://127.0.0.1:${http.address().port}/mcp` })));
