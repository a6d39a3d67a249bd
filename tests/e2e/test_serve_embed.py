#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Embeddings: OpenAI's and Ollama's routes give the same vectors, in each form, refuse by name
what they do not do, and follow what a checkpoint says of its pooling."""
import array
import base64
import json
import math
import os
import pathlib
import tempfile
import unittest

from command import MODEL
from server import Server, Shared

TEXTS = ["It was a cold evening in November.", "The old man said nothing.", "é " * 30]
NAME = pathlib.Path(MODEL).name


def floats(text):
    values = array.array("f")
    values.frombytes(base64.b64decode(text, validate=True))
    return list(values)


def as_floats(numbers):
    return list(array.array("f", numbers))


class Embeddings(Shared):
    options = ("--slots", 2, "--queue", 4, "--ctx", 256)

    def embed(self, texts, **more):
        status, answer = self.server.post("/v1/embeddings", input=texts, **more)
        self.assertEqual(status, 200, answer)
        self.assertEqual([one["index"] for one in answer["data"]], list(range(len(answer["data"]))))
        return [one["embedding"] for one in answer["data"]], answer

    def test_forms_of_input(self):
        three, answer = self.embed(TEXTS, model=NAME, user="me")
        self.assertEqual((answer["object"], answer["model"], answer["data"][0]["object"]),
                         ("list", NAME, "embedding"))
        for vector in three:
            self.assertAlmostEqual(math.fsum(x * x for x in vector), 1, places=5)
        self.assertNotEqual(three[0], three[1])
        ids = [json.loads(self.server.ask("POST", "/tokenize", {
            "content": text, "add_special": True})[2])["tokens"] for text in TEXTS]
        self.assertEqual(answer["usage"], {"prompt_tokens": sum(map(len, ids)),
                                           "total_tokens": sum(map(len, ids))})
        self.assertEqual(self.embed(ids)[0], three)
        self.assertEqual(self.embed(TEXTS[1])[0], [three[1]])
        self.assertEqual(self.embed(ids[2])[0], [three[2]])

    def test_encodings_and_dimensions(self):
        (vector,), _ = self.embed(TEXTS[0])
        (text,), _ = self.embed(TEXTS[0], encoding_format="base64")
        self.assertEqual(floats(text), as_floats(vector))
        for n in (1, 3, len(vector) - 1, len(vector)):
            (short,), _ = self.embed(TEXTS[0], dimensions=n)
            length = math.sqrt(math.fsum(x * x for x in vector[:n]))
            self.assertEqual(len(short), n)
            for got, whole in zip(short, vector):
                self.assertAlmostEqual(got, whole / length, places=5)

    def test_many_texts_take_one_place(self):
        many = [f"Text {i % 7}" for i in range(60)]  # slots and queue hold six requests
        vectors, _ = self.embed(many)
        self.assertEqual(len(vectors), 60)
        for i, vector in enumerate(vectors):
            self.assertEqual(vector, vectors[i % 7])
        self.server.wait(lambda health: health["busy"] == 0)

    def test_answers_beside_them_stay_the_same(self):
        body = {"max_tokens": 24, "seed": 3, "temperature": 1}
        before = self.server.complete("The old man", **body)["choices"][0]["text"]
        stream = self.server.open_stream(prompt="Once more", max_tokens=60)
        vectors, _ = self.embed(TEXTS * 3)
        self.assertEqual(vectors[:3], vectors[3:6])
        self.assertEqual(self.server.complete("The old man", **body)["choices"][0]["text"], before)
        stream.close()

    def test_what_is_refused(self):
        for field, body in {
                "input": [{}, {"input": []}, {"input": ""}, {"input": ["a", ""]}, {"input": 3},
                          {"input": ["a", 3]}, {"input": [[]]}, {"input": [1, "a"]},
                          {"input": [10 ** 9]}, {"input": [-1]}, {"input": {"a": "b"}},
                          {"input": ["a"] * 2049}, {"input": [1.5]}, {"input": "so " * 400},
                          {"input": [[5] * 257]}, {"input": "x" * 200000}],
                "encoding_format": [{"input": "a", "encoding_format": "int8"}],
                "dimensions": [{"input": "a", "dimensions": 0}, {"input": "a", "dimensions": 9999},
                               {"input": "a", "dimensions": "3"}],
                "input_type": [{"input": "a", "input_type": "query"}]}.items():
            for one in body:
                with self.subTest(str(one)[:60]):
                    self.assertEqual(self.refused("/v1/embeddings", **one)["param"], field)
        error = self.refused("/v1/embeddings", 404, input="a", model="other")
        self.assertEqual(error["code"], "model_not_found")
        self.assertEqual(self.refused("/v1/embeddings", input="so " * 400)["code"],
                         "context_length_exceeded")
        self.embed([[5] * 256])  # all of the context

    def test_ollama(self):
        three, _ = self.embed(TEXTS)
        status, answer = self.server.post("/api/embed", model=NAME + ":latest", input=TEXTS,
                                          keep_alive="5m", options={"num_ctx": 64})
        self.assertEqual((status, answer["embeddings"], answer["model"]), (200, three, NAME))
        status, answer = self.server.post("/api/embed", model=NAME, input=TEXTS[0], dimensions=8)
        self.assertEqual(answer["embeddings"], self.embed(TEXTS[0], dimensions=8)[0])
        status, answer = self.server.post("/api/embeddings", model=NAME, prompt=TEXTS[1])
        self.assertEqual((status, answer), (200, {"embedding": three[1]}))
        for path, body in (("/api/embed", {"input": "a", "truncate": True}),
                           ("/api/embed", {"input": "a", "options": {"temperature": 1}}),
                           ("/api/embed", {"input": "a", "options": 3}),
                           ("/api/embeddings", {"input": "a"}), ("/api/embeddings", {})):
            status, answer = self.server.post(path, model=NAME, **body)
            self.assertEqual((status, list(answer)), (400, ["error"]), answer)
        self.assertEqual(self.server.post("/api/embed", model="other", input="a")[0], 404)
        self.assertEqual(self.server.post("/api/embed", input="a")[0], 400)

    def test_metrics_count_them(self):
        before = self.server.metric("stint_prompt_tokens_total")
        _, answer = self.embed(TEXTS)
        after = self.server.metric("stint_prompt_tokens_total")
        self.assertEqual(after - before, answer["usage"]["prompt_tokens"])
        self.assertIn('stint_requests_total{route="/v1/embeddings",code="200"}',
                      self.server.get("/metrics"))


class Pooling(unittest.TestCase):
    """The bundled model as a checkpoint of sentence-transformers."""

    def embed(self, config=None, modules=None, expected=200):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            for file in pathlib.Path(MODEL).iterdir():
                (path / file.name).symlink_to(file.resolve())
            if config is not None:
                (path / "1_Pooling").mkdir()
                (path / "1_Pooling" / "config.json").write_text(json.dumps(config))
            if modules is not None:
                (path / "modules.json").write_text(json.dumps(modules))
            with Server(model=path, environment={**os.environ}) as server:
                # The first of a prefix's hidden states is the first of the text's.
                found = []
                for text in ([7, 8, 9], [7], [7, 8]):
                    status, answer = server.post("/v1/embeddings", input=text)
                    self.assertEqual(status, expected, answer)
                    if status != 200:
                        return answer["error"]
                    found.append(answer["data"][0]["embedding"])
                return found

    def test_kinds(self):
        text, first, _ = self.embed({"pooling_mode_cls_token": True})
        self.assertEqual(text, first)
        mean, same, two = self.embed()
        self.assertEqual(same, first)
        self.assertEqual(self.embed({"pooling_mode_mean_tokens": True}), [mean, same, two])
        last, alone, _ = self.embed({"pooling_mode_lasttoken": True})
        self.assertEqual(alone, first)
        self.assertEqual(len({tuple(v) for v in (first, mean, last)}), 3)

    def test_what_a_checkpoint_needs_beyond_that(self):
        error = self.embed({"pooling_mode_max_tokens": True}, expected=400)
        self.assertIn("pooling_mode_max_tokens", error["message"])
        error = self.embed(modules=[{"type": "sentence_transformers.models.Dense"}], expected=400)
        self.assertIn("Dense", error["message"])


if __name__ == "__main__":
    unittest.main()
