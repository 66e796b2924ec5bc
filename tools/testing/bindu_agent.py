"""An agent of the reference implementation that needs no language model. Usage: bindu_agent.py <port>"""

import sys

from bindu.penguin.bindufy import bindufy


def handler(messages):
    text = " ".join(part.get("text", "") for part in messages[-1]["parts"])
    return "You said: " + text


bindufy(
    {
        "author": "dev@example.com",
        "name": "echo_agent",
        "description": "Repeats a text word for word",
        "deployment": {"url": f"http://127.0.0.1:{sys.argv[1]}", "expose": False},
        "skills": ["skills/echo"],
        "telemetry": False,
    },
    handler,
)
