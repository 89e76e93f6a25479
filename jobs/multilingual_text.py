#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Make clean English, Chinese, Arabic and Hindi text of what Debian packages.

usage: multilingual_text.py UNPACKED_DIR OUT_DIR [--holdout 40000]

UNPACKED_DIR holds the unpacked packages that jobs/multilingual.sh names (dpkg-deb -x). For each
language OUT_DIR gets LANGUAGE.train.txt and LANGUAGE.holdout.txt of about as many bytes as asked.
A document is a page of a book or manual, a fortune, or a few messages or example sentences that
follow one another: its paragraphs a line each, a blank line after it. A paragraph is kept when
enough of it is written in the language's script, and when it did not occur before, so that nothing
in the held-out documents was seen in training. Only Python's own library is needed.
"""

import argparse
import gettext
import glob
import gzip
import html
import json
import os
import re
import sys
import unicodedata

import corpus

HAN = "\u3400-\u9fff\uf900-\ufaff"
# script, its least share of a paragraph that is kept, the least length of one
LANGUAGES = {
    "en": ("A-Za-z", 0.5, 20),
    "zh": (HAN, 0.3, 10),
    "ar": ("\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufeff", 0.4, 20),
    "hi": ("\u0900-\u097f", 0.4, 20),
}
MESSAGES = 20  # messages or example sentences of one document
MOST_HELD = 0.5  # of a language with little text


def join(text):
    """One line; no space where a line broke between two Chinese characters."""
    text = re.sub(rf"(?<=[{HAN}，。；：！？、）》」])\s*\n\s*(?=[{HAN}（《「])", "", text)
    return " ".join(text.split())


# Of an HTML page: what has no prose in it, and the tags that part paragraphs.
DROPPED = re.compile(
    r"<(script|style|pre|head|header|aside|nav)\b.*?</\1>|<ul class=.docnav.*?</ul>", re.S
)
BREAK = re.compile(r"</?(?:p|div|li|dt|dd|td|th|tr|section|body|br|h[1-6])\b[^>]*>")


def pages(pattern):
    for path in sorted(glob.glob(pattern, recursive=True)):
        with open(path, encoding="utf-8") as file:
            text = DROPPED.sub("\n", file.read())
        parts = (re.sub(r"<[^>]*>", "", part) for part in BREAK.split(text))
        yield [join(html.unescape(part)) for part in parts if not part.isspace()]


def manuals(pattern):
    """Paragraphs of roff sources: headings and prose; tables and listings are left out."""
    for path in sorted(glob.glob(pattern)):
        if os.path.islink(path):
            continue
        with gzip.open(path) as file:
            source = file.read().decode("utf-8", "replace")
        paragraphs, lines, listing = [], [], False
        for line in source.split("\n"):
            macro = re.match(r"[.']\s*(\w*)\s*(.*)", line)
            name, rest = macro.groups() if macro else ("", line)
            if name in ("nf", "EX", "TS"):
                listing = True
            if name in ("fi", "EE", "TE"):
                listing = False
            if listing:
                continue
            if macro and name not in ("B", "I", "BR", "BI", "IR", "IB", "RB", "RI", "SM"):
                paragraphs.append(join("\n".join(lines)))
                lines = []
                continue
            if macro:
                glue = " " if len(name) == 1 else ""
                rest = glue.join(re.findall(r'"[^"]*"|\S+', rest)).replace('"', "")
            rest = re.sub(r"\\f(\[[^]]*\]|\(..|.)|\\s[-+]?\d|\\[&,/:|^c]|\\\".*", "", rest)
            rest = rest.replace("\\-", "-").replace("\\e", "\\").replace("\\(co", "©")
            rest = re.sub(r"\\(\[[^]]*\]|\(..|\*.)", "", rest).replace("\\ ", " ")
            lines.append(rest.replace("\\", ""))
            if not rest.strip():
                paragraphs.append(join("\n".join(lines)))
                lines = []
        paragraphs.append(join("\n".join(lines)))
        yield paragraphs


def fortunes(folder):
    for name in ("chinese", "song100", "tang300"):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = re.sub(r"\x1b\[[0-9;]*m", "", file.read())
        for entry in re.split(r"^%$", text, flags=re.M):
            yield [join(entry)] if len(entry) < 400 else map(join, re.split(r"\n\s*\n", entry))


def few_at_a_time(messages):
    document = []
    for message in messages:
        document.append(message)
        if len(document) == MESSAGES:
            yield document
            document = []
    if document:
        yield document


def plain(text):
    return html.unescape(re.sub(r"<[^<>]*>", " ", text))


def catalogues(pattern):
    """Translated messages of .mo files; a context's messages stand together."""
    for path in sorted(glob.glob(pattern)):
        with open(path, "rb") as file:
            catalogue = gettext.GNUTranslations(file)._catalog
        messages = sorted((str(key), text) for key, text in catalogue.items() if key)
        keys = r"[~_&](?=\w)|\([~_&]?\w\)"  # that open a menu entry: "_File", "फ़ाइल (_F)"
        yield from few_at_a_time(join(re.sub(keys, "", plain(text))) for _, text in messages)


def interface(pattern):
    """MediaWiki's messages, in the order of their files, which is by subject."""
    for path in sorted(glob.glob(pattern, recursive=True)):
        with open(path, encoding="utf-8") as file:
            messages = json.load(file)
        messages.pop("@metadata", None)
        yield from few_at_a_time(join(wiki(message)) for message in messages.values())


def wiki(text):
    text = plain(text)
    for _ in range(3):  # templates in templates: {{PLURAL:$1|one|many}} is read as its last form
        text = re.sub(r"\{\{[^{}]*?([^{}|:]*)\}\}", r"\1", text)
    text = re.sub(r"\[\[(?:[^][|]*\|)?([^][]*)\]\]", r"\1", text)
    text = re.sub(r"\[(?:https?:)?//\S+ ([^]]*)\]", r"\1", text)
    return re.sub(r"'{2,}|^[*#:;=\s]+|=+$", "", text, flags=re.M)


def examples(folder, name):
    """The example sentences, in quotes, of a FreeDict dictionary, with their translations."""
    lines = "\n".join(corpus.dictd(folder, name)).split("\n")
    found = (re.fullmatch(r'\s*"(.*)"\s*', line) for line in lines)
    yield from few_at_a_time(join(match[1]) for match in found if match)


def sources(language, folder):
    share = os.path.join(folder, "usr/share")
    office = os.path.join(folder, "usr/lib/libreoffice/program/resource")
    book = {"en": "en-US", "zh": "zh-CN", "ar": "ar-MA"}
    if language in book:
        yield "debian-handbook", pages(f"{share}/doc/debian-handbook/html/{book[language]}/*.html")
    if language == "en":
        for name in ("foldoc", "jargon"):
            entries = corpus.indented(folder, name)
            yield name, ([head, *paragraphs] for head, paragraphs in entries)
    if language == "zh":
        yield "manpages-zh", manuals(f"{share}/man/zh_CN/man*/*.gz")
        yield "fortunes-zh", fortunes(f"{share}/games/fortunes")
        yield "libreoffice-help", pages(f"{share}/libreoffice/help/zh-CN/text/**/*.html")
    if language == "hi":
        yield "freedict examples", examples(folder, "freedict-eng-hin")
        yield "libreoffice-help", pages(f"{share}/libreoffice/help/hi/text/**/*.html")
    if language in ("ar", "hi"):
        yield "mediawiki", interface(f"{share}/mediawiki/**/i18n/**/{language}.json")
        yield "libreoffice", catalogues(f"{office}/{language}/LC_MESSAGES/*.mo")
        for package in ("gnucash", "evolution", "vlc"):
            path = f"{share}/locale/{language}/LC_MESSAGES/{package}.mo"
            yield package, catalogues(path)


def documents(language, folder):
    script, least, shortest = LANGUAGES[language]
    in_script = re.compile(f"[{script}]")
    seen = set()
    for name, found in sources(language, folder):
        for paragraphs in found:
            kept = []
            for paragraph in paragraphs:
                paragraph = unicodedata.normalize("NFC", paragraph)
                key = re.sub(r"[\W\d_]+", "", paragraph.lower())
                letters = len(in_script.findall(paragraph))
                if (
                    len(paragraph) >= shortest
                    and letters >= least * len(paragraph.replace(" ", ""))
                    and key not in seen
                ):
                    seen.add(key)
                    kept.append(paragraph)
            if kept:
                yield name, "\n".join(kept)


def write(path, texts):
    with open(path + ".part", "w", encoding="utf-8") as file:
        for text in texts:
            file.write(text + "\n\n")
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--holdout", type=int, default=40000, help="bytes held out of a language")
    arguments = parser.parse_args()

    for language in LANGUAGES:
        sizes, texts = {}, []
        for name, text in documents(language, arguments.folder):
            sizes[name] = sizes.get(name, 0) + len(text.encode())
            texts.append(text)
        if not texts:
            sys.exit(f"multilingual_text.py: {arguments.folder}: no text in '{language}' there")
        fraction = min(MOST_HELD, arguments.holdout / sum(sizes.values()))
        held = [corpus.held_out(text, fraction) for text in texts]
        for part, wanted in (("holdout", True), ("train", False)):
            path = os.path.join(arguments.out, f"{language}.{part}.txt")
            write(path, (text for text, is_held in zip(texts, held) if is_held == wanted))
        parts = ", ".join(f"{name} {size / 1e6:.2f}" for name, size in sizes.items())
        total = sum(sizes.values()) / 1e6
        print(f"text {language}: {total:.2f} MB in {len(texts):,} documents: {parts}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"multilingual_text.py: {error.filename}: {error.strerror}")
