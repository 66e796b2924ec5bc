"""Runs the step of its first argument with PyPI `openai` or `mcp`. Arguments: step, gateway, token."""
import asyncio
import base64
import pathlib
import sys

step, gateway, token = sys.argv[1:4]
sales = pathlib.Path(__file__).parents[2] / "examples" / "sales.csv"


def openai_client(key=token):
    from openai import OpenAI

    return OpenAI(base_url=f"{gateway}v1", api_key=key, max_retries=0)


def ask(text):
    return [{"role": "user", "content": text}]


def models():
    ids = [model.id for model in openai_client().models.list()]
    assert {"auto", "calculator"} <= set(ids), ids


def chat():
    answer = openai_client().chat.completions.create(model="calculator", messages=ask("calculate 6*7"))
    assert "42" in answer.choices[0].message.content, answer


def stream():
    chunks = openai_client().chat.completions.create(model="auto", messages=ask("calculate 6*7"), stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert "42" in text, text


def file():
    data = base64.b64encode(sales.read_bytes()).decode()
    part = {"type": "file", "file": {"filename": "sales.csv", "file_data": f"data:text/csv;base64,{data}"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "what stands out?"}, part]}]
    answer = openai_client().chat.completions.create(model="data-analyst", messages=messages)
    assert answer.choices[0].message.content, answer


def responses():
    answer = openai_client().responses.create(model="calculator", input="calculate 6*7")
    assert "42" in answer.output_text, answer


def errors():
    import openai

    try:
        openai_client().chat.completions.create(model="unknown-agent", messages=ask("hello"))
    except openai.NotFoundError as error:
        assert error.code == "model_not_found", error
    else:
        raise AssertionError("no error")
    try:
        openai_client("none").models.list()
    except openai.AuthenticationError:
        return
    raise AssertionError("no error")


async def mcp():
    import httpx2 as httpx
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async with httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http:
        async with streamable_http_client(f"{gateway}mcp", http_client=http) as (read, write, *_):
            async with ClientSession(read, write) as session:
                await session.initialize()
                names = [tool.name for tool in (await session.list_tools()).tools]
                assert "calculator__calculate" in names, names
                result = await session.call_tool("calculator__calculate", {"text": "6*7"})
                assert "42" in result.content[0].text, result


run = globals()[step]
if asyncio.iscoroutinefunction(run):
    asyncio.run(run())
else:
    run()
