"""Drives a server through the official Python SDK, generation 1: one JSON line for each step, no judgement.

    python python1.py PLAN

The plan is JSON: `url` and `token`, or `command`, `folder` and `variables`; and `steps`, each a list of a name and what
it needs. Or it has `cells`, which are such plans, one after the other; `answer` is what a form is answered with, where the
client can be asked.
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

import httpx
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult, PromptReference, ResourceTemplateReference
from pydantic import AnyUrl

PLAN = json.loads(sys.argv[1])


def say(step, fact):
    print(json.dumps({"step": step, **fact}), flush=True)


@asynccontextmanager
async def streams(plan):
    if "url" in plan:
        headers = {"authorization": f"Bearer {plan['token']}"}
        async with httpx.AsyncClient(headers=headers, timeout=60) as http:
            async with streamable_http_client(plan["url"], http_client=http) as opened:
                yield opened
    else:
        command, *arguments = plan["command"]
        server = StdioServerParameters(
            command=command, args=arguments, cwd=plan["folder"], env=plan["variables"]
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
        case "read":
            return {"text": (await session.read_resource(AnyUrl(given[0]))).contents[0].text}
        case "prompt":
            return {"text": (await session.get_prompt(*given)).messages[0].content.text}
        case "complete":
            ref, name, value = given
            kind = PromptReference if ref["type"] == "ref/prompt" else ResourceTemplateReference
            completed = await session.complete(kind(**ref), {"name": name, "value": value})
            return {"values": completed.completion.values}


def answering(plan):
    """What the client answers forms with; none, where it is not to be asked."""
    if "answer" not in plan:
        return None

    async def answer(_context, _params):
        return ElicitResult(action="accept", content=plan["answer"])

    return answer


async def walk(plan):
    async with (
        streams(plan) as (read, write, session_id),
        ClientSession(read, write, elicitation_callback=answering(plan)) as session,
    ):
        opened = await session.initialize()
        say(
            "connect",
            {
                "revision": opened.protocolVersion,
                "session": session_id(),
                "server": opened.serverInfo.name,
            },
        )
        for step, *given in plan["steps"]:
            try:
                say(step, await act(session, step, given))
            except McpError as error:
                say(step, {"error": {"code": error.error.code, "message": error.error.message}})


def roots(error):
    """What really went wrong, out of the groups that task groups wrap around it."""
    parts = getattr(error, "exceptions", None)
    return [root for part in parts for root in roots(part)] if parts else [error]


try:
    for cell in PLAN.get("cells", [PLAN]):
        asyncio.run(walk(cell))
        say("close", {})
except Exception as error:
    say("failed", {"error": {"message": "; ".join(str(root) for root in roots(error))}})
