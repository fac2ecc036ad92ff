"""Drives a server through the official Python SDK, generation 2: one JSON line for each step, no judgement.

    python python2.py PLAN

The plan is JSON: `url` and `token`, or `command`, `folder` and `variables`; `mode`, how the revision is agreed on; and
`steps`, each a list of a name and what it needs.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

PLAN = json.loads(sys.argv[1])


def say(step, fact):
    print(json.dumps({"step": step, **fact}), flush=True)


async def server(stack):
    if "url" in PLAN:
        headers = {"authorization": f"Bearer {PLAN['token']}"}
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))
        return streamable_http_client(PLAN["url"], http_client=http)
    command, *arguments = PLAN["command"]
    return StdioServerParameters(
        command=command, args=arguments, cwd=PLAN["folder"], env=PLAN["variables"]
    )


def outcome(result):
    return {
        "error_of_tool": bool(result.is_error),
        "text": result.content[0].text if result.content else None,
        "structured": result.structured_content,
    }


async def progress(done, _total, message):
    say("progress", {"progress": done, "message": message})


async def act(client, step, given):
    match step:
        case "tools":
            return {"names": [tool.name for tool in (await client.list_tools()).tools]}
        case "ping":
            return {"answer": (await client.send_ping()).model_dump(exclude_none=True)}
        case "call":
            return outcome(await client.call_tool(*given))
        case "watch":
            return outcome(await client.call_tool(*given, progress_callback=progress))


async def main():
    async with AsyncExitStack() as stack:
        client = Client(await server(stack), mode=PLAN["mode"])
        await stack.enter_async_context(client)
        about = client.server_info
        say("connect", {"revision": client.protocol_version, "server": about.name if about else None})
        for step, *given in PLAN["steps"]:
            try:
                say(step, await act(client, step, given))
            except MCPError as error:
                say(step, {"error": {"code": error.code, "message": error.message}})


def roots(error):
    """What really went wrong, out of the groups that task groups wrap around it."""
    parts = getattr(error, "exceptions", None)
    return [root for part in parts for root in roots(part)] if parts else [error]


try:
    asyncio.run(main())
    say("close", {})
except Exception as error:
    say("failed", {"error": {"message": "; ".join(str(root) for root in roots(error))}})
