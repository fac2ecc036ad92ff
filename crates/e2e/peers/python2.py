"""Drives a server through the official Python SDK, generation 2: one JSON line for each step, no judgement.

    python python2.py PLAN

The plan is JSON: `url` and `token`, or `command`, `folder` and `variables`; `mode`, how the revision is agreed on; and
`steps`, each a list of a name and what it needs. Or it has `cells`, which are such plans, one after the other; `answer` is
what a form is answered with, where the client can be asked.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult, PromptReference, ResourceTemplateReference

PLAN = json.loads(sys.argv[1])


def say(step, fact):
    print(json.dumps({"step": step, **fact}), flush=True)


async def server(stack, plan):
    if "url" in plan:
        headers = {"authorization": f"Bearer {plan['token']}"}
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))
        return streamable_http_client(plan["url"], http_client=http)
    command, *arguments = plan["command"]
    return StdioServerParameters(
        command=command, args=arguments, cwd=plan["folder"], env=plan["variables"]
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
        case "read":
            return {"text": (await client.read_resource(given[0])).contents[0].text}
        case "prompt":
            return {"text": (await client.get_prompt(*given)).messages[0].content.text}
        case "complete":
            ref, name, value = given
            kind = PromptReference if ref["type"] == "ref/prompt" else ResourceTemplateReference
            completed = await client.complete(kind(**ref), {"name": name, "value": value})
            return {"values": completed.completion.values}
        case "cancel":
            return await cancel(client, *given)


async def cancel(client, name, given):
    """Gives a call up as soon as it is known to run."""
    with anyio.CancelScope() as scope:

        async def begun(_done, _total, _message):
            scope.cancel()

        await client.call_tool(name, given, progress_callback=begun)
    return {"cancelled": scope.cancelled_caught}


def answering(plan):
    """What the client answers forms with; none, where it is not to be asked."""
    if "answer" not in plan:
        return None

    async def answer(_context, _params):
        return ElicitResult(action="accept", content=plan["answer"])

    return answer


async def walk(plan):
    async with AsyncExitStack() as stack:
        at = await server(stack, plan)
        client = Client(at, mode=plan["mode"], elicitation_callback=answering(plan))
        await stack.enter_async_context(client)
        about = client.server_info
        say("connect", {"revision": client.protocol_version, "server": about.name if about else None})
        for step, *given in plan["steps"]:
            try:
                say(step, await act(client, step, given))
            except MCPError as error:
                say(step, {"error": {"code": error.code, "message": error.message}})


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
