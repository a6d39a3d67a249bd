#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What models write, on the page of stint serve: Markdown, formulas, colours of code; and that
nothing of it becomes script, asks another host, or stops the browser."""
import pathlib
import tempfile
import unittest

from page import GREEDY, Browsing, By, conversation
from scripted import write_model

RICH = r"""# Title

Some **bold**, *slanted*, `a<b`, ~~gone~~, [a link](https://example.org/x "Title"),
https://auto.example and &copy; \*.

| Name | Amount | Note |
|:-----|-------:|:----:|
| One  | 1,234  | `a`  |
| Two  | 5      | **b** |

> A quote
>
> - with a list

3. Third
   - nested
     - deeper
4. Fourth

- [ ] open
- [x] done

It is $e^{i\pi} + 1 = 0$ and \(a_b\); it costs $5 to $10.

$$\int_0^1 x^2\,dx = \frac{1}{3}$$

\[
x = \sqrt{2}
\]

```python
def f(x):
    return "<b>"  # why
```

```unheard-of
plain & simple
```
"""

HOSTILE = r"""<script>window.hit = 1</script>
<img src=x onerror="window.hit = 1"> <svg onload="window.hit = 1"> <iframe src="/health"></iframe>

<div onclick="window.hit = 1">block</div>

[a](javascript:window.hit=1) [b](JaVaScRiPt:window.hit=1) [c](data:text/html,<script>1</script>)
[d](&#106;avascript:window.hit=1) [e](java
script:window.hit=1) [f](vbscript:x) [g](/v1/models) [h](//evil.example) [i](file:///etc/passwd)
<javascript:window.hit=1> [j]

![picture](https://evil.example/p.png) ![x](javascript:window.hit=1)

[j]: javascript:window.hit=1 "t"

[k](https://evil.example/"onmouseover="window.hit=1)
[l](https://x.example 'a" onclick="window.hit=1')

$\href{javascript:window.hit=1}{x} \htmlData{a=b}{y} \includegraphics{https://evil.example/p.png}$

$\def\a{\a\a}\a$ $\rule{99999em}{99999em}$ $\unknown{$ $\color{red;background:url(//e.example)}x$

```html"><script>window.hit=1</script>
<script>window.hit = 1</script>
```

```xml
<a href="javascript:window.hit=1"><![CDATA[</code></pre><script>window.hit=1</script>]]></a>
```

```__proto__
x
```

| <script>window.hit=1</script> | b |
|--|--|
| [x](javascript:window.hit=1) | <img src=x onerror=window.hit=1> |
"""
# Elements and attributes that an answer may consist of; MathML's are checked apart.
CHECK = """
const bad = [], math = "http://www.w3.org/1998/Math/MathML";
const allowed = new Set(("P H3 H4 H5 H6 UL OL LI BLOCKQUOTE TABLE THEAD TBODY TR TH TD STRONG" +
  " EM S HR BR A SPAN DIV CODE PRE FIGURE FIGCAPTION BUTTON svg use").split(" "));
for (const node of document.querySelectorAll(".turn.answer .text *")) {
  if (node.namespaceURI !== math && !allowed.has(node.tagName)) bad.push(node.tagName);
  for (const {name, value} of node.attributes) {
    if (name.startsWith("on") || name === "style" || name === "src") bad.push(name + "=" + value);
    if (name === "href" && !/^(https?:|mailto:|#icon-)/.test(value)) bad.push(name + "=" + value);
  }
}
return [bad, window.hit ?? null, document.querySelectorAll("script").length];
"""
# Long texts of marks, each of which some reader of Markdown takes minutes for.
MARKS = ["*a ", "*a **a ", "_a*b", ">", "[", "![", "[a](", "`a``", "| a ", "- a\n ", "<a ", "x@",
         "$a ", "$$", "\\(", "\\[\n", "&#", "~~a", "# ", "```a\n", "(https://a", "[a]: b\n", "1. ",
         " \t\n"]


class Text(Browsing):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.model = write_model(
            pathlib.Path(folder.name) / "scripted",
            {"?": ["| a |", " b |\n", "|--", "|---|\n", "| 1 ", "| 2 |", "\n\nSo ", "$x^", "2$ it",
                   " is.\n\n``", "`py", "thon\nx", " = 1", "\n```\nEnd"]},
            "{% for m in messages %}{{ m.content }}{% endfor %}")
        super().setUpClass()

    def show(self, text):
        self.set_up(GREEDY, conversation("one", "Well?", text), opened="one")
        return self.wait(lambda: self.find(".turn.answer .text"))

    def test_markdown(self):
        text = self.show(RICH)
        self.wait(lambda: self.find(".hljs-keyword") and self.find("math"))

        def every(selector):
            return [node.text for node in text.find_elements(By.CSS_SELECTOR, selector)]
        self.assertEqual(every("h3"), ["Title"])
        self.assertEqual([every("strong")[0], every("em"), every("p code"), every("s")],
                         ["bold", ["slanted"], ["a<b"], ["gone"]])
        links = [(node.text, node.get_attribute("href"), node.get_attribute("rel"))
                 for node in text.find_elements(By.TAG_NAME, "a")]
        rel = "noopener noreferrer nofollow"
        self.assertEqual(links, [("a link", "https://example.org/x", rel),
                                 ("https://auto.example", "https://auto.example/", rel)])
        self.assertIn("© *.", every("p")[0])
        self.assertEqual(every("th"), ["Name", "Amount", "Note"])
        self.assertEqual(every("td.right"), ["1,234", "5"])
        self.assertEqual(every("td.center strong"), ["b"])
        self.assertEqual(every("blockquote li"), ["with a list"])
        self.assertEqual(every("ol > li > ul > li > ul > li"), ["deeper"])
        self.assertEqual(text.find_element(By.TAG_NAME, "ol").get_attribute("start"), "3")
        self.assertEqual(every("ul > li")[-2:], ["☐ open", "☑ done"])

    def test_formulas_are_mathml_and_money_is_text(self):
        text = self.show(RICH)
        self.wait(lambda: len(self.all("math")) == 4)
        self.assertEqual(len(self.all(".formula.display math[display=block]")), 2)
        self.assertIn("it costs $5 to $10", text.text)
        self.assertEqual(self.find(".formula.display annotation").get_attribute("textContent"),
                         r"\int_0^1 x^2\,dx = \frac{1}{3}")
        self.assertTrue(self.all("math mfrac, math msqrt"))

    def test_code_is_coloured_and_stays_what_it_is(self):
        self.show(RICH)
        self.wait(lambda: self.find(".hljs-keyword"))
        codes = [node.get_attribute("textContent") for node in self.all("pre code")]
        self.assertEqual(codes, ['def f(x):\n    return "<b>"  # why', "plain & simple"])
        self.assertEqual([node.text for node in self.all(".hljs-keyword")], ["def", "return"])
        self.assertEqual(self.find(".hljs-comment").text, "# why")

    def test_an_answer_that_grows_is_built_block_by_block(self):
        self.say("Well?")
        self.answered(2)
        self.wait(lambda: self.find("math") and self.find(".hljs-number"))
        self.assertEqual([node.text for node in self.all(".text th, .text td")],
                         ["a", "b", "1", "2"])
        self.assertEqual(self.find(".text pre").text, "x = 1")
        self.assertEqual(self.all(".text > p")[-1].text, "End")

    def test_nothing_becomes_script(self):
        text = self.show(HOSTILE)
        scripts = len(self.all("script"))
        self.wait(lambda: self.find("math"))
        self.assertEqual(self.browser.execute_script(CHECK), [[], None, scripts])
        for link in text.find_elements(By.TAG_NAME, "a"):
            self.assertEqual(link.get_attribute("target"), "_blank")
        self.assertIn("<script>window.hit = 1</script>", text.text)
        asked = self.browser.execute_script(
            "return performance.getEntriesByType('resource').map(({name}) => name)")
        self.assertEqual([name for name in asked if not name.startswith(self.server.address)], [])

    def test_the_policy_stops_what_would(self):
        """Were there a mistake, texts would still not become HTML, script or a request."""
        self.assertEqual(self.browser.execute_script("""
            try { document.body.innerHTML = "<b>x</b>"; return "made"; }
            catch (error) { return error.name; }"""), "TypeError")
        self.browser.get_log("browser")

    def test_long_texts_of_marks_do_not_stop_the_page(self):
        self.browser.set_script_timeout(60)
        for mark in MARKS:
            text = mark * (10000 // len(mark))
            length = self.browser.execute_async_script("""
                const [text, done] = arguments;
                import("/markdown.js").then(({render}) => {
                  const host = document.createElement("div");
                  render(host, text);
                  done(host.textContent.length);
                });""", text)
            self.assertGreaterEqual(length, 0, mark)


if __name__ == "__main__":
    unittest.main()
