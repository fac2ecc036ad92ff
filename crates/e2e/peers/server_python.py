"""A server on the official Python SDK of either generation, for what is behind the gate.

    python server_python.py http|sse|stdio

Over HTTP it listens on a port that is free and says where, in a line of JSON: `{"url": …}`. It offers what
`server-typescript1.mjs` offers.
"""

import json
import socket
import sys
from typing import Annotated

import anyio
import uvicorn
from pydantic import BaseModel

try:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.resolve import Elicit, Resolve
    from mcp_types import Completion
    GENERATION = 2
except ImportError:
    from mcp.server.fastmcp import Context, FastMCP as MCPServer
    from mcp.types import Completion
    GENERATION = 1

server = MCPServer(f"python{GENERATION}")


class Sum(BaseModel):
    sum: float


class Name(BaseModel):
    name: str


@server.tool(description="Says it again.")
def echo(text: str) -> str:
    return text


@server.tool(description="Adds two numbers.")
def add(a: float, b: float) -> Sum:
    return Sum(sum=a + b)


@server.tool(description="Counts, and reports each number.")
async def count(to: int, ctx: Context) -> str:
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
    return f"counted to {to}"


if GENERATION == 1:

    @server.tool(description="Asks for a name.")
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("who is there?", Name)
        return f"hello {answer.data.name}" if answer.action == "accept" else answer.action

else:

    def who() -> Elicit[Name]:
        return Elicit("who is there?", Name)

    @server.tool(description="Asks for a name.")
    async def ask(answer: Annotated[Name, Resolve(who)]) -> str:
        return f"hello {answer.name}"


# What `waited` waits for: that a call of `wait` was cancelled.
cancelled = anyio.Event()


@server.tool(description="Waits until it is cancelled.")
async def wait(ctx: Context) -> str:
    # A cancellation may come as soon as something was reported.
    try:
        await ctx.report_progress(1)
        await anyio.sleep_forever()
    finally:
        cancelled.set()


@server.tool(description="Waits until a call was cancelled.")
async def waited() -> str:
    await cancelled.wait()
    return "one was cancelled"


@server.completion()
async def complete(_ref, argument, _context):
    return Completion(values=[f"{argument.value}1", f"{argument.value}2"])


@server.resource("note://one", mime_type="text/plain")
def one() -> str:
    return "the first note"


@server.resource("note://by/{name}")
def note(name: str) -> str:
    return f"a note by {name}"


@server.prompt(description="A greeting.")
def greet(name: str) -> str:
    return f"greet {name}"


way = sys.argv[1]
if way == "stdio":
    server.run("stdio")
else:
    app, path = (server.sse_app(), "/sse") if way == "sse" else (server.streamable_http_app(), "/mcp")
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    # Whoever reads the line may connect at once.
    listener.listen()
    print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}{path}"}), flush=True)
    config = uvicorn.Config(app, log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])
