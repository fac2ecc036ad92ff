"""Drives a server through the official Python SDK, generation 1: one JSON line for each step, no judgement.

    python python1.py PLAN

The plan is JSON: `url` and `token`, or `command`, `folder` and `variables`; and `steps`, each a list of a name and what
it needs.
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

import httpx
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

PLAN = json.loads(sys.argv[1])


def say(step, fact):
    print(json.dumps({"step": step, **fact}), flush=True)


@asynccontextmanager
async def streams():
    if "url" in PLAN:
        headers = {"authorization": f"Bearer {PLAN['token']}"}
        async with httpx.AsyncClient(headers=headers, timeout=60) as http:
            async with streamable_http_client(PLAN["url"], http_client=http) as opened:
                yield opened
    else:
        command, *arguments = PLAN["command"]
        server = StdioServerParameters(
            command=command, args=arguments, cwd=PLAN["folder"], env=PLAN["variables"]
        )
        async with stdio_client(server) as (read, write):
            yield read, write, lambda: None


def outcome(result):
    return {
        "error_of_tool": result.isError,
        "text": result.content[0].text if result.content else None,
        "structured": result.structuredContent,
    }


async def progress(done, _total, message):
    say("progress", {"progress": done, "message": message})


async def act(session, step, given):
    match step:
        case "tools":
            return {"names": [tool.name for tool in (await session.list_tools()).tools]}
        case "ping":
            return {"answer": (await session.send_ping()).model_dump(exclude_none=True)}
        case "call":
            return outcome(await session.call_tool(*given))
        case "watch":
            return outcome(await session.call_tool(*given, progress_callback=progress))


async def main():
    async with streams() as (read, write, session_id), ClientSession(read, write) as session:
        opened = await session.initialize()
        say(
            "connect",
            {
                "revision": opened.protocolVersion,
                "session": session_id(),
                "server": opened.serverInfo.name,
            },
        )
        for step, *given in PLAN["steps"]:
            try:
                say(step, await act(session, step, given))
            except McpError as error:
                say(step, {"error": {"code": error.error.code, "message": error.error.message}})


def roots(error):
    """What really went wrong, out of the groups that task groups wrap around it."""
    parts = getattr(error, "exceptions", None)
    return [root for part in parts for root in roots(part)] if parts else [error]


try:
    asyncio.run(main())
    say("close", {})
except Exception as error:
    say("failed", {"error": {"message": "; ".join(str(root) for root in roots(error))}})
