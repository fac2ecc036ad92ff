"""Drives a server through the client of FastMCP: one JSON line for each step, no judgement.

    python client_fastmcp.py PLAN

The plan is JSON: `cells`, one after the other, each with `url`, `token`, `mode`, how the revision is agreed on, and `steps`,
each a list of a name and what it needs; `answer` is what a form is answered with, where the client can be asked.
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.exceptions import ToolError
from mcp import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

PLAN = json.loads(sys.argv[1])


def say(step, fact):
    print(json.dumps({"step": step, **fact}), flush=True)


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
            return {"names": [tool.name for tool in await client.list_tools()]}
        case "call":
            return outcome(await client.call_tool(*given))
        case "watch":
            return outcome(await client.call_tool(*given, progress_handler=progress))
        case "read":
            return {"text": (await client.read_resource(given[0]))[0].text}
        case "prompt":
            return {"text": (await client.get_prompt(*given)).messages[0].content.text}
        case "complete":
            ref, name, value = given
            kind = PromptReference if ref["type"] == "ref/prompt" else ResourceTemplateReference
            completed = await client.complete(kind(**ref), {"name": name, "value": value})
            return {"values": completed.values}


def answering(plan):
    """What the client answers forms with; none, where it is not to be asked."""
    if "answer" not in plan:
        return None

    async def answer(_message, _type, _params, _context):
        return plan["answer"]

    return answer


async def walk(plan):
    headers = {"authorization": f"Bearer {plan['token']}"}
    at = StreamableHttpTransport(plan["url"], headers=headers)
    async with Client(at, mode=plan["mode"], elicitation_handler=answering(plan)) as client:
        say("connect", {})
        for step, *given in plan["steps"]:
            try:
                say(step, await act(client, step, given))
            except (MCPError, ToolError) as error:
                say(step, {"error": {"message": str(error)}})


for cell in PLAN["cells"]:
    asyncio.run(walk(cell))
    say("close", {})
