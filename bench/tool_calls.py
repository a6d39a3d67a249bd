#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Share of well-formed tool calls: 40 requests in the style of public function-calling benchmarks,
greedy, to any server with OpenAI's protocol. A call is well-formed if it names one of the request's
tools and its arguments follow that tool's schema (names, required ones, types, enums).

    bench/tool_calls.py http://127.0.0.1:8080/v1 [--model NAME] [--show]
"""
import argparse
import json
import urllib.request


def tool(name, description, required, **properties):
    return {"type": "function", "function": {
        "name": name, "description": description,
        "parameters": {"type": "object", "properties": properties, "required": required}}}


def text(description, **more):
    return {"type": "string", "description": description, **more}


def number(description, kind="number"):
    return {"type": kind, "description": description}


WEATHER = tool("get_weather", "Get the current weather of a city", ["city"], city=text("City"),
               unit=text("Unit of the temperature", enum=["celsius", "fahrenheit"]))
AREA = tool("triangle_area", "Area of a triangle", ["base", "height"],
            base=number("Base", "integer"), height=number("Height", "integer"))
CONVERT = tool("convert_currency", "Convert an amount of money", ["amount", "source", "target"],
               amount=number("Amount"), source=text("Code of the currency, such as USD"),
               target=text("Code of the currency, such as EUR"))
FLIGHT = tool("find_flights", "Find flights between two cities", ["origin", "destination", "date"],
              origin=text("City"), destination=text("City"), date=text("YYYY-MM-DD"))
MAIL = tool("send_mail", "Send an e-mail", ["to", "subject", "body"], to=text("Address"),
            subject=text("Subject"), body=text("Text"))
REMIND = tool("set_reminder", "Set a reminder", ["text", "time"], text=text("What"),
              time=text("HH:MM"))
TRANSLATE = tool("translate", "Translate a text", ["text", "language"], text=text("Text"),
                 language=text("Target language"))
FACTORIAL = tool("factorial", "Factorial of a number", ["number"],
                 number=number("The number", "integer"))
STOCK = tool("stock_price", "Latest price of a stock", ["symbol"], symbol=text("Ticker symbol"))
SEARCH = tool("search_files", "Search files for a pattern", ["pattern"], pattern=text("Pattern"),
              folder=text("Where to search"))

ONE_TOOL = [
    (WEATHER, "What is the weather in Paris?"), (WEATHER, "Is it cold in Oslo now, in celsius?"),
    (WEATHER, "Tell me the weather in Tokyo in fahrenheit."), (WEATHER, "Weather in Cairo please"),
    (AREA, "Find the area of a triangle with a base of 10 units and height of 5 units."),
    (AREA, "How large is a triangle with base 7 and height 12?"),
    (AREA, "A triangle has base 3 and height 4. Its area?"),
    (CONVERT, "Convert 100 USD to EUR."), (CONVERT, "How many yen (JPY) are 25.5 GBP?"),
    (CONVERT, "I have 40 Swiss francs (CHF). How much is that in USD?"),
    (FLIGHT, "Find flights from Berlin to Madrid on 2026-03-01."),
    (FLIGHT, "I want to fly from Boston to Denver on 2026-12-24."),
    (MAIL, "Write to ann@example.com, subject Lunch, that I will be late."),
    (MAIL, "Send bob@example.com a mail with subject Hello and text Hi Bob."),
    (REMIND, "Remind me to call mum at 18:30."), (REMIND, "Set a reminder for 07:00: take pills."),
    (TRANSLATE, "Translate 'good morning' into French."),
    (TRANSLATE, "How do you say 'thank you' in Japanese?"),
    (FACTORIAL, "Calculate the factorial of 5."), (FACTORIAL, "What is 12 factorial?"),
    (STOCK, "What is the price of AAPL?"), (STOCK, "How is Microsoft (MSFT) stock doing?"),
    (SEARCH, "Search the folder src for the pattern main."),
    (SEARCH, "Which files contain 'password'?"),
]
FOUR_TOOLS = [
    ([WEATHER, CONVERT, MAIL, STOCK], "What is the weather in Lima?"),
    ([WEATHER, CONVERT, MAIL, STOCK], "Convert 12 EUR to PLN."),
    ([WEATHER, CONVERT, MAIL, STOCK], "What does the stock NVDA cost?"),
    ([WEATHER, CONVERT, MAIL, STOCK], "Mail eve@example.com: subject Hi, body See you."),
    ([AREA, FACTORIAL, TRANSLATE, REMIND], "What is the factorial of 9?"),
    ([AREA, FACTORIAL, TRANSLATE, REMIND], "Translate 'cat' into German."),
    ([AREA, FACTORIAL, TRANSLATE, REMIND], "Remind me at 09:15 to buy milk."),
    ([AREA, FACTORIAL, TRANSLATE, REMIND], "Area of a triangle, base 6, height 8?"),
    ([SEARCH, FLIGHT, STOCK, WEATHER], "Flights from Rome to Vienna on 2026-05-05?"),
    ([SEARCH, FLIGHT, STOCK, WEATHER], "Search for the pattern main in the folder app."),
    ([WEATHER], "Compare the weather in Paris and in Rome."),
    ([STOCK], "What are the prices of AAPL and of IBM?"),
    ([FACTORIAL], "Calculate the factorials of 4 and of 6."),
    ([TRANSLATE], "Translate 'dog' into French and into Spanish."),
    ([CONVERT], "How much are 10 USD in EUR, and in GBP?"),
    ([REMIND], "Remind me at 08:00 to run and at 20:00 to read."),
]
REQUESTS = [([one], prompt) for one, prompt in ONE_TOOL] + FOUR_TOOLS
TYPES = {"string": str, "integer": int, "number": (int, float)}


def well_formed(call, tools):
    by_name = {one["function"]["name"]: one["function"]["parameters"] for one in tools}
    schema = by_name.get(call["function"]["name"])
    try:
        arguments = json.loads(call["function"]["arguments"])
    except ValueError:
        return False
    if schema is None or not isinstance(arguments, dict):
        return False
    known = schema["properties"]
    return set(schema["required"]) <= set(arguments) <= set(known) and all(
        isinstance(value, TYPES[known[key]["type"]]) and value in known[key].get("enum", [value])
        for key, value in arguments.items())


def ask(address, body):
    request = urllib.request.Request(address + "/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.load(response)["choices"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("address")
    parser.add_argument("--model")
    parser.add_argument("--show", action="store_true", help="print the answers without calls")
    options = parser.parse_args()
    n_calls = n_good = 0
    for tools, prompt in REQUESTS:
        choice = ask(options.address, {
            **({"model": options.model} if options.model else {}), "tools": tools,
            "messages": [{"role": "user", "content": prompt}], "temperature": 0,
            "max_tokens": 256})
        calls = choice["message"].get("tool_calls") or []
        n_calls += bool(calls)
        good = bool(calls) and all(well_formed(call, tools) for call in calls)
        n_good += good
        if options.show and not good:
            print(prompt, "->", json.dumps(choice["message"]))
    print(f"{len(REQUESTS)} requests, {n_calls} with calls, {n_good} well-formed")


if __name__ == "__main__":
    main()
