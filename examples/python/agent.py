#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An agent with a tool, by OpenAI's package: the model calls the tool, and answers with what it
gave. The first answer has to be a call, so that small models work too. OPENAI_BASE_URL names a
server other than the one on port 8080.

    stint serve smollm2-135m
    agent.py "What is 12 times 34?"
"""
import json
import os
import sys

from openai import OpenAI

OPERATIONS = {"add": lambda a, b: a + b, "subtract": lambda a, b: a - b,
              "multiply": lambda a, b: a * b}
TOOL = {"type": "function", "function": {
    "name": "calculate", "description": "Calculates with two numbers",
    "parameters": {"type": "object", "additionalProperties": False,
                   "required": ["operation", "a", "b"],
                   "properties": {"operation": {"enum": list(OPERATIONS)},
                                  "a": {"type": "integer", "minimum": 0, "maximum": 9999},
                                  "b": {"type": "integer", "minimum": 0, "maximum": 9999}}}}}


def calculate(operation, a, b):
    return OPERATIONS[operation](a, b)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: agent.py QUESTION")
    client = OpenAI(base_url=os.environ.get("OPENAI_BASE_URL", "http://localhost:8080/v1"),
                    api_key=os.environ.get("OPENAI_API_KEY", "none"))
    model = client.models.list().data[0].id
    messages = [{"role": "user", "content": sys.argv[1]}]
    answer = client.chat.completions.create(model=model, messages=messages, tools=[TOOL],
                                            tool_choice="required").choices[0].message
    messages.append(answer)
    for call in answer.tool_calls:
        arguments = json.loads(call.function.arguments)
        result = calculate(**arguments)
        print(f"{call.function.name} {arguments} = {result}")
        messages.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})
    answer = client.chat.completions.create(model=model, messages=messages, max_tokens=64)
    print(answer.choices[0].message.content)


if __name__ == "__main__":
    main()
