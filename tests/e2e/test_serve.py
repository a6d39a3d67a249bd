#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stint serve as clients see it: every endpoint, streams, sampling, errors."""
import json
import re
import unittest

from command import MODEL, PROMPT, stint, stint_json
from server import Shared, events


BOS = json.loads((MODEL / "config.json").read_text(encoding="utf-8"))["bos_token_id"]


def ids_of(text):
    """As a prompt begins."""
    return [BOS] + stint_json("tokenize", MODEL, text=text)["ids"]


def text_of(chunks, index=0):
    return "".join(choice["text"] if "text" in choice else choice["delta"].get("content", "")
                   for chunk in chunks for choice in chunk["choices"]
                   if choice["index"] == index)


class About(Shared):
    def test_models(self):
        model, = json.loads(self.server.get("/v1/models"))["data"]
        self.assertEqual(model["id"], "novels-10m")
        self.assertEqual(model["stint"]["slots"], 4)
        self.assertEqual(model["stint"]["context"], 2048)
        self.assertEqual(json.loads(self.server.get("/v1/models/novels-10m")), model)
        status, _, text = self.server.ask("GET", "/v1/models/gpt-4")
        self.assertEqual((status, json.loads(text)["error"]["code"]), (404, "model_not_found"))

    def test_health(self):
        self.assertEqual(self.server.health(), {"status": "ok", "slots": 4, "busy": 0, "queued": 0})

    def test_metrics_count(self):
        before = self.server.metric("stint_generated_tokens_total")
        asked = self.server.metric("stint_requests_total")
        self.server.complete(PROMPT, max_tokens=5, temperature=0)
        self.assertEqual(self.server.metric("stint_generated_tokens_total"), before + 5)
        self.assertGreater(self.server.metric("stint_requests_total"), asked)
        text = self.server.get("/metrics")
        for name in ("stint_first_token_seconds_bucket", "stint_token_seconds_count",
                     "stint_queue_length", "stint_slots_busy", "stint_cache_hit_rate",
                     "stint_peak_memory_bytes", "stint_bubble_rate"):
            self.assertIn(f"\n{name}", text)

    def test_the_last_request_is_told(self):
        self.server.complete(PROMPT, max_tokens=3, temperature=0)
        last = json.loads(self.server.get("/stint/last"))
        self.assertEqual(last["generated_tokens"], 3)
        self.assertEqual(len(last["tokens"]), 3)
        model, = json.loads(self.server.get("/v1/models"))["data"]
        self.assertEqual((last["exec"], last["device"]), ("float", "cpu"))
        self.assertEqual((model["stint"]["exec"], model["stint"]["device"]), ("float", "cpu"))
        self.assertIs(model["stint"]["reasoning"], False)

    def test_the_page_may_ask_this_server_alone(self):
        status, headers, text = self.server.ask("GET", "/")
        self.assertEqual(status, 200)
        self.assertIn(b"<!doctype html>", text[:200].lower())
        policy = headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertIn("frame-ancestors 'none'", policy)
        self.assertIn("require-trusted-types-for 'script'; trusted-types 'none'", policy)
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        for path, kind in (("/app.js", "javascript"), ("/style.css", "css"),
                           ("/markdown-it.js", "javascript")):
            status, headers, _ = self.server.ask("GET", path)
            self.assertEqual(status, 200, path)
            self.assertIn(kind, headers["Content-Type"])

    def test_the_page_stays_small(self):
        """What comes with the page; formulas and colours of code come when they are needed."""
        sizes = {}
        todo = ["index.html"]
        for name in todo:
            text = self.server.get(f"/{name}")
            sizes[name] = len(text.encode())
            found = re.findall(r'(?:src=|href=|from |import )"(?:\./)?([\w-]+\.(?:js|css))"', text)
            todo += [other for other in found if other not in todo]
        self.assertIn("markdown-it.js", sizes)
        self.assertNotIn("katex.js", sizes)
        own = sum(size for name, size in sizes.items() if name != "markdown-it.js")
        self.assertLess(own, 160 << 10)
        self.assertLess(sizes["markdown-it.js"], 320 << 10)
        for name, limit in (("katex.js", 320 << 10), ("highlight.js", 256 << 10)):
            self.assertLess(len(self.server.get(f"/{name}").encode()), limit)

    def test_head_has_no_body(self):
        status, headers, text = self.server.ask("HEAD", "/health")
        self.assertEqual((status, text), (200, b""))
        self.assertGreater(int(headers["Content-Length"]), 0)

    def test_unknown_paths_and_methods(self):
        for method, path, status in (("GET", "/v1/nothing", 404), ("GET", "/nothing.js", 404),
                                     ("POST", "/nothing", 404), ("POST", "/v1/models", 405),
                                     ("GET", "/v1/completions", 405), ("PUT", "/health", 405),
                                     ("OPTIONS", "/v1/completions", 405)):
            got, headers, text = self.server.ask(method, path)
            self.assertEqual(got, status, (method, path))
            self.assertIn("message", json.loads(text)["error"])
            if status == 405:
                self.assertIn(headers["Allow"], ("GET", "POST"))


class Completions(Shared):
    def test_the_answer_is_what_run_writes(self):
        text = stint("run", MODEL, "-n", "24", "-p", PROMPT).stdout
        answer = self.server.complete(PROMPT, max_tokens=24, temperature=0)
        self.assertEqual(answer["choices"][0]["text"] + "\n", text)
        self.assertEqual(answer["object"], "text_completion")
        self.assertEqual(answer["model"], "novels-10m")
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")

    def test_usage_counts(self):
        ids = ids_of(PROMPT)
        usage = self.server.complete(PROMPT, max_tokens=7, temperature=0, n=2)["usage"]
        self.assertEqual(usage["prompt_tokens"], len(ids))
        self.assertEqual(usage["completion_tokens"], 14)
        self.assertEqual(usage["total_tokens"], len(ids) + 14)

    def test_ids_are_prompts(self):
        ids = ids_of(PROMPT)
        one = self.server.complete(PROMPT, max_tokens=6, temperature=0)["choices"][0]["text"]
        both = self.server.complete([ids, ids], max_tokens=6, temperature=0)["choices"]
        self.assertEqual([choice["text"] for choice in both], [one, one])
        self.assertEqual([choice["index"] for choice in both], [0, 1])

    def test_several_prompts_are_answered_as_alone(self):
        prompts = [PROMPT, "The old man said"]
        alone = [self.server.complete(p, max_tokens=6, temperature=0)["choices"][0]["text"]
                 for p in prompts]
        both = self.server.complete(prompts, max_tokens=6, temperature=0)["choices"]
        self.assertEqual([choice["text"] for choice in both], alone)

    def test_stop_texts_end_answers_and_are_no_part_of_them(self):
        text = self.server.complete(PROMPT, max_tokens=24, temperature=0)["choices"][0]["text"]
        stop = text[9:14]
        for stops in (stop, ["never there", stop]):
            choice, = self.server.complete(PROMPT, max_tokens=24, temperature=0, stop=stops,
                                           logprobs=0)["choices"]
            self.assertEqual(choice["text"], text[:text.index(stop)])
            self.assertEqual(choice["finish_reason"], "stop")
            told = "".join(choice["logprobs"]["tokens"])
            self.assertTrue(told.startswith(choice["text"]))
            self.assertLess(len(told), len(text))
        chunks = self.stream("/v1/completions", prompt=PROMPT, max_tokens=24, temperature=0,
                             stop=stop)
        self.assertEqual(text_of(chunks), text[:text.index(stop)])

    def test_a_stream_is_the_whole_answer_in_pieces(self):
        body = {"prompt": PROMPT, "max_tokens": 16, "seed": 11, "n": 3}
        whole = self.server.complete(**body)["choices"]
        chunks = self.stream("/v1/completions", **body, stream_options={"include_usage": True})
        for i, choice in enumerate(whole):
            self.assertEqual(text_of(chunks, i), choice["text"])
        self.assertEqual(len({chunk["id"] for chunk in chunks}), 1)
        self.assertEqual(chunks[-1]["choices"], [])
        self.assertEqual(chunks[-1]["usage"]["completion_tokens"], 48)
        self.assertTrue(all(chunk["usage"] is None for chunk in chunks[:-1]))
        ends = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
        self.assertEqual(sum(end is not None for end in ends), 3)

    def test_seeds_repeat_and_differ(self):
        def ask(**body):
            return [c["text"] for c in self.server.complete(PROMPT, max_tokens=16,
                                                            **body)["choices"]]
        self.assertEqual(ask(seed=5), ask(seed=5))
        self.assertEqual(ask(seed=-7), ask(seed=-7))
        self.assertNotEqual(ask(seed=5), ask(seed=6))
        self.assertEqual(ask(seed=5, n=2), ask(seed=5) + ask(seed=6))
        self.assertNotEqual(ask(), ask())
        self.assertEqual(ask(temperature=0), ask(temperature=0, seed=3))
        self.assertEqual(ask(top_p=0), ask(temperature=0))

    def test_penalties_change_the_text(self):
        plain = self.server.complete(PROMPT, max_tokens=64, temperature=0)["choices"][0]["text"]
        for name in ("presence_penalty", "frequency_penalty"):
            other = self.server.complete(PROMPT, max_tokens=64, temperature=0, **{name: 2})
            self.assertNotEqual(other["choices"][0]["text"], plain)

    def test_logprobs_belong_to_the_text(self):
        choice, = self.server.complete(PROMPT, max_tokens=9, temperature=0, logprobs=3)["choices"]
        told = choice["logprobs"]
        self.assertEqual("".join(told["tokens"]), choice["text"])
        self.assertEqual(told["text_offset"],
                         [len("".join(told["tokens"][:i])) for i in range(9)])
        for token, logprob, tops in zip(told["tokens"], told["token_logprobs"],
                                        told["top_logprobs"]):
            self.assertLess(logprob, 0)
            self.assertAlmostEqual(tops[token], logprob, 5)  # greedy: the likeliest
            self.assertEqual(max(tops.values()), tops[token])
        chunks = self.stream("/v1/completions", prompt=PROMPT, max_tokens=9, temperature=0,
                             logprobs=3)
        tokens = [t for chunk in chunks for c in chunk["choices"] if c["logprobs"]
                  for t in c["logprobs"]["tokens"]]
        self.assertEqual(tokens, told["tokens"])

    def test_refusals_name_the_field(self):
        for field, value in (("n", 0), ("n", 9), ("n", "1"), ("n", 1.5), ("temperature", 2.1),
                             ("temperature", "hot"), ("top_p", -0.1), ("max_tokens", -1),
                             ("max_tokens", 2 ** 40), ("stop", ["a"] * 5), ("stop", ""),
                             ("stop", [1]), ("seed", 0.5), ("seed", 2 ** 70), ("logprobs", 21),
                             ("presence_penalty", 3), ("frequency_penalty", -3), ("stream", 1),
                             ("stream_options", {"include_usage": True}), ("best_of", 9),
                             ("logit_bias", {"1": 101}), ("logit_bias", {"4096": 1}),
                             ("echo", 1), ("suffix", "end"),
                             ("dry_sequence_breakers", ["."]),
                             ("prompt", []), ("prompt", [1, "a"]),
                             ("prompt", [4096]), ("prompt", [-1]), ("prompt", {"a": 1}),
                             ("prompt", ["a"] * 65), ("model", 1)):
            with self.subTest(field=field, value=value):
                if field == "seed" and value == 2 ** 70:
                    self.refused("/v1/completions", prompt=PROMPT, seed=value)
                    continue
                error = self.refused("/v1/completions", **{"prompt": PROMPT, field: value})
                self.assertEqual(error["param"], field)
                self.assertEqual(error["type"], "invalid_request_error")

    def test_biases_of_tokens(self):
        """They ban and prefer, and log-probabilities are without them."""
        ask = {"max_tokens": 12, "temperature": 0, "logprobs": 1}
        plain = self.server.complete(PROMPT, **ask)["choices"][0]
        word = plain["logprobs"]["tokens"][0]
        one = str(ids_of(word)[1])
        other = self.server.complete(PROMPT, **ask, logit_bias={one: -100})["choices"][0]
        self.assertNotIn(word, other["logprobs"]["tokens"])
        self.assertEqual(other["logprobs"]["top_logprobs"][0], plain["logprobs"]["top_logprobs"][0])
        same = self.server.complete([PROMPT] * 2, **ask, logit_bias={one: 100})["choices"]
        self.assertEqual([choice["text"] for choice in same], [word * 12] * 2)
        self.assertEqual(self.server.complete(PROMPT, **ask)["choices"][0], plain)

    def test_echo_scores_the_prompt(self):
        """As harnesses ask that compare the likelihoods of texts."""
        ids = stint_json("tokenize", MODEL, text=PROMPT)["ids"]
        for prompt, n_answer in ((PROMPT, 0), (ids, 0), (ids, 1), ([ids] * 2, 1), (ids * 20, 0)):
            answer = self.server.complete(prompt, echo=True, logprobs=2, max_tokens=n_answer,
                                          temperature=0)
            for choice in answer["choices"]:
                told = choice["logprobs"]
                n = len(told["tokens"])
                self.assertTrue("".join(told["tokens"]).endswith(choice["text"]))
                self.assertTrue(choice["text"].startswith(PROMPT))
                marks = prompt == PROMPT  # BOS stands in front of texts alone
                self.assertEqual((n - marks) % len(ids), n_answer)
                self.assertEqual((told["token_logprobs"][0], told["top_logprobs"][0]), (None, None))
                self.assertTrue(all(value < 0 for value in told["token_logprobs"][1:]))
                self.assertTrue(all(len(top) == 2 for top in told["top_logprobs"][1:]))
            self.assertEqual(answer["usage"]["completion_tokens"],
                             n_answer * len(answer["choices"]))

    def test_scores_of_a_prompt_are_those_of_its_answer(self):
        ask = {"temperature": 0, "logprobs": 1}
        said = self.server.complete(PROMPT, max_tokens=8, **ask)["choices"][0]
        again = self.server.complete(PROMPT + said["text"], max_tokens=0, echo=True, **ask)
        told = again["choices"][0]["logprobs"]
        self.assertEqual(told["tokens"][-8:], said["logprobs"]["tokens"])
        for one, two in zip(told["token_logprobs"][-8:], said["logprobs"]["token_logprobs"]):
            self.assertAlmostEqual(one, two, delta=0.02)

    def test_echo_without_scores_and_streamed(self):
        whole = self.server.complete(PROMPT, echo=True, max_tokens=4, temperature=0)["choices"][0]
        self.assertTrue(whole["text"].startswith(PROMPT))
        self.assertIsNone(whole["logprobs"])
        pieces = self.stream("/v1/completions", prompt=PROMPT, echo=True, max_tokens=4,
                             temperature=0)
        self.assertEqual("".join(c["choices"][0]["text"] for c in pieces), whole["text"])

    def test_tokens_of_a_text_and_back(self):
        ids = stint_json("tokenize", MODEL, text=PROMPT)["ids"]
        for field in ("content", "prompt"):
            status, answer = self.server.post("/tokenize", **{field: PROMPT, "add_special": False})
            self.assertEqual((status, answer["tokens"]), (200, ids))
            status, answer = self.server.post("/detokenize", tokens=ids)
            self.assertEqual((status, answer[field]), (200, PROMPT))
        for path, field, value in (("/tokenize", "content", 1), ("/tokenize", "other", ""),
                                   ("/tokenize", "content", "a" * 1000000),
                                   ("/detokenize", "tokens", [4096]),
                                   ("/detokenize", "tokens", ["a"])):
            self.refused(path, **{field: value})

    def test_grammars(self):
        grammar = 'root ::= "yes" [!.] | "n" "o"{2,3}'
        user = [{"role": "user", "content": "?"}]
        for path, body in (("/v1/completions", {"prompt": PROMPT}),
                           ("/v1/chat/completions", {"messages": user})):
            status, answer = self.server.post(path, grammar=grammar, max_tokens=20, **body)
            choice = answer["choices"][0]
            text = choice.get("text") or choice["message"]["content"]
            self.assertEqual((status, choice["finish_reason"]), (200, "stop"))
            self.assertIn(text, ("yes!", "yes.", "noo", "nooo"))
            for wrong, more in (("root ::= a", {}), ("root ::= root", {}), (1, {})):
                error = self.refused(path, grammar=wrong, **body, **more)
                self.assertEqual(error["param"], "grammar")
        self.assertEqual(self.refused("/v1/chat/completions", messages=user, grammar=grammar,
                                      response_format={"type": "json_object"})["param"], "grammar")

    def test_what_asks_for_nothing_is_no_error(self):
        self.server.complete(PROMPT, max_tokens=1, logit_bias={}, echo=False, suffix="", n=None,
                             best_of=1, user="somebody", unknown_field=None, stop=None,
                             metadata={"a": "b"}, store=True)

    def test_a_prompt_beyond_the_context(self):
        error = self.refused("/v1/completions", prompt="word " * 3000)
        self.assertEqual(error["code"], "context_length_exceeded")
        self.assertIn("2048", error["message"])

    def test_the_best_of_several_answers(self):
        """They are those of `n` with their log-probabilities, the likeliest first."""
        asked = {"prompt": PROMPT, "max_tokens": 12, "temperature": 1.2, "seed": 5, "logprobs": 0}
        _, every = self.server.post("/v1/completions", n=4, **asked)
        scores = {c["text"]: sum(c["logprobs"]["token_logprobs"]) /
                  len(c["logprobs"]["token_logprobs"]) for c in every["choices"]}
        self.assertEqual(len(scores), 4)
        _, best = self.server.post("/v1/completions", n=2, best_of=4, **asked)
        texts = [c["text"] for c in best["choices"]]
        self.assertEqual(texts, sorted(scores, key=scores.get, reverse=True)[:2])
        self.assertEqual([c["index"] for c in best["choices"]], [0, 1])
        self.assertEqual(best["usage"]["completion_tokens"], 48)
        del asked["logprobs"]
        _, two = self.server.post("/v1/completions", best_of=4, **{**asked, "prompt": [PROMPT] * 2})
        self.assertEqual([c["text"] for c in two["choices"]], texts[:1] * 2)
        self.assertIsNone(two["choices"][0]["logprobs"])

    def test_another_model_is_not_there(self):
        error = self.refused("/v1/completions", status=404, prompt=PROMPT, model="gpt-4")
        self.assertEqual((error["code"], error["param"]), ("model_not_found", "model"))
        self.assertIn("novels-10m", error["message"])

    def test_more_answers_than_there_is_room_for(self):
        self.assertEqual(self.refused("/v1/completions", prompt=["a"] * 8, n=8)["param"], "n")
        error = self.refused("/v1/completions", prompt=["a"] * 8, best_of=8)
        self.assertEqual(error["param"], "best_of")


class Chat(Shared):
    def test_a_conversation(self):
        messages = [{"role": "system", "content": "You write like Dickens."},
                    {"role": "user", "content": [{"type": "text", "text": "The old man"}]},
                    {"role": "assistant", "content": "said"}, {"role": "user", "content": "What?"}]
        status, answer = self.server.post("/v1/chat/completions", messages=messages, max_tokens=8,
                                          temperature=0)
        self.assertEqual(status, 200, answer)
        choice, = answer["choices"]
        self.assertEqual(answer["object"], "chat.completion")
        self.assertEqual(choice["message"]["role"], "assistant")
        self.assertEqual(answer["usage"]["completion_tokens"], 8)

    def test_the_answer_is_what_run_writes(self):
        text = stint("run", MODEL, "-n", "12", "--chat", "-p", "The old man").stdout
        answer = self.server.chat("The old man", max_tokens=12, temperature=0)
        self.assertEqual(answer["choices"][0]["message"]["content"] + "\n", text)

    def test_a_stream_tells_the_role_first(self):
        body = {"messages": [{"role": "user", "content": PROMPT}], "max_completion_tokens": 9,
                "seed": 3, "n": 2}
        _, whole = self.server.post("/v1/chat/completions", **body)
        chunks = self.stream("/v1/chat/completions", **body)
        for i, choice in enumerate(whole["choices"]):
            mine = [c["choices"][0] for c in chunks if c["choices"][0]["index"] == i]
            self.assertEqual(mine[0]["delta"], {"role": "assistant", "content": ""})
            self.assertEqual(mine[-1]["finish_reason"], "length")
            self.assertEqual(text_of(chunks, i), choice["message"]["content"])

    def test_logprobs_have_bytes(self):
        choice, = self.server.chat(PROMPT, max_tokens=6, temperature=0, logprobs=True,
                                   top_logprobs=2)["choices"]
        entries = choice["logprobs"]["content"]
        whole = b"".join(bytes(entry["bytes"]) for entry in entries)
        self.assertEqual(whole.decode(), choice["message"]["content"])
        self.assertTrue(all(len(entry["top_logprobs"]) == 2 for entry in entries))

    def test_the_system_message_is_computed_once(self):
        messages = [{"role": "system", "content": "You write like Dickens. " * 30}]
        for text in ("The old man", "The young lady"):
            _, answer = self.server.post("/v1/chat/completions", max_tokens=2, temperature=0,
                                         messages=messages + [{"role": "user", "content": text}])
        self.assertGreater(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 100)

    def test_refusals(self):
        user = [{"role": "user", "content": "a"}]
        tool = {"type": "function", "function": {"name": "f"}}
        for param, body in (
                ("messages", {}), ("messages", {"messages": []}), ("messages", {"messages": "a"}),
                ("messages[0]", {"messages": ["a"]}),
                ("messages[0]", {"messages": [{"role": "user"}]}),
                ("messages[0]", {"messages": [{"role": "wizard", "content": "a"}]}),
                ("messages[1]", {"messages": user + [{"role": "user", "content": [
                    {"type": "image_url", "image_url": {"url": "x"}}]}]}),
                ("top_logprobs", {"messages": user, "top_logprobs": 2}),
                ("response_format", {"messages": user, "response_format": {"type": "xml"}}),
                ("response_format", {"messages": user, "response_format": {
                    "type": "json_schema", "json_schema": {"name": "a"}}}),
                ("response_format", {"messages": user, "response_format": {
                    "type": "json_schema", "json_schema": {"schema": {"type": "wizard"}}}}),
                ("tools", {"messages": user, "tools": [{"type": "function"}]}),
                ("tool_choice", {"messages": user, "tool_choice": "required"}),
                ("tool_choice", {"messages": user, "tools": [tool], "tool_choice": {
                    "type": "function", "function": {"name": "g"}}}),
                ("functions", {"messages": user, "functions": [{"name": "f"}]})):
            with self.subTest(body=body):
                self.assertEqual(self.refused("/v1/chat/completions", **body)["param"], param)


class Structured(Shared):
    """Answers that must be JSON."""
    weather = {"type": "function", "function": {
        "name": "weather", "parameters": {
            "type": "object", "additionalProperties": False, "required": ["city", "days"],
            "properties": {"city": {"enum": ["Paris", "Rome"]},
                           "days": {"type": "integer", "minimum": 1, "maximum": 7}}}}}
    clock = {"type": "function", "function": {
        "name": "clock", "parameters": {"type": "object", "properties": {},
                                        "additionalProperties": False}}}

    def test_schema(self):
        schema = {"type": "object", "additionalProperties": False, "required": ["old", "name"],
                  "properties": {"old": {"type": "boolean"},
                                 "name": {"enum": ["Oliver", "Fagin"]}}}
        for seed in range(3):
            choice, = self.server.chat(PROMPT, seed=seed, max_tokens=200, response_format={
                "type": "json_schema", "json_schema": {"name": "who", "schema": schema}})["choices"]
            value = json.loads(choice["message"]["content"])
            self.assertEqual(set(value), {"old", "name"})
            self.assertIn(value["name"], ("Oliver", "Fagin"))
            self.assertEqual(choice["finish_reason"], "stop")

    def test_required_call(self):
        for seed in range(3):
            choice, = self.server.chat(PROMPT, seed=seed, max_tokens=200, tool_choice="required",
                                       tools=[self.weather, self.clock])["choices"]
            call, = choice["message"]["tool_calls"]
            self.assertEqual(choice["finish_reason"], "tool_calls")
            self.assertIn(call["function"]["name"], ("weather", "clock"))
            self.assertIsInstance(json.loads(call["function"]["arguments"]), dict)

    def test_named_call_and_its_stream(self):
        body = {"messages": [{"role": "user", "content": PROMPT}], "seed": 2, "max_tokens": 200,
                "tools": [self.clock, self.weather],
                "tool_choice": {"type": "function", "function": {"name": "weather"}}}
        _, answer = self.server.post("/v1/chat/completions", **body)
        call, = answer["choices"][0]["message"]["tool_calls"]
        arguments = json.loads(call["function"]["arguments"])
        self.assertIn(arguments["city"], ("Paris", "Rome"))
        self.assertIn(arguments["days"], range(1, 8))
        deltas = [c["choices"][0] for c in self.stream("/v1/chat/completions", **body)]
        called = [d["delta"]["tool_calls"] for d in deltas if "tool_calls" in d["delta"]]
        self.assertEqual(called[0][0]["function"], call["function"])
        self.assertEqual(called[0][0]["index"], 0)
        self.assertEqual(deltas[-1]["finish_reason"], "tool_calls")

    def test_a_call_that_is_cut_off_stays_text(self):
        choice, = self.server.chat(PROMPT, seed=1, max_tokens=2, tool_choice="required",
                                   tools=[self.weather])["choices"]
        self.assertEqual(choice["finish_reason"], "length")
        self.assertNotIn("tool_calls", choice["message"])

    def test_tools_are_told_to_a_model_without_them(self):
        def n_prompt(**more):
            return self.server.chat("a", max_tokens=1, **more)["usage"]["prompt_tokens"]
        self.assertGreater(n_prompt(tools=[self.weather]), n_prompt() + 50)

    def test_forms_of_tool_choice(self):
        named = {"type": "function", "name": "weather"}
        for choice in ("any", {"type": "required"}, named,
                       {"type": "allowed_tools", "mode": "required", "tools": [named]},
                       {"type": "allowed_tools", "allowed_tools": {
                           "mode": "required", "tools": [{"function": {"name": "weather"}}]}}):
            answer = self.server.chat(PROMPT, seed=1, max_tokens=200, tool_choice=choice,
                                      tools=[self.weather, self.clock])
            call, = answer["choices"][0]["message"]["tool_calls"]
            if isinstance(choice, dict) and choice["type"] != "required":
                self.assertEqual(call["function"]["name"], "weather")
        error = self.refused("/v1/chat/completions", messages=[{"role": "user", "content": "a"}],
                             tools=[self.weather], tool_choice={
                                 "type": "allowed_tools", "mode": "auto", "tools": [{"name": "x"}]})
        self.assertEqual(error["param"], "tool_choice")

    def test_required_calls_may_be_parallel(self):
        answer = self.server.chat(PROMPT, seed=1, max_tokens=400, tool_choice="required",
                                  parallel_tool_calls=True, tools=[self.weather])
        choice, = answer["choices"]
        if choice["finish_reason"] != "length":
            for call in choice["message"]["tool_calls"]:
                self.assertIn(json.loads(call["function"]["arguments"])["city"], ("Paris", "Rome"))


if __name__ == "__main__":
    unittest.main()
