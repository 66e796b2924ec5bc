"""Builds the training pairs of the sentence encoder, its development set and the leak check.

    python pairs.py --sources DIR --benchmark shared/benchmarks/routing --out DIR

DIR of --sources has a bare git repository OWNER+NAME/repo for each entry of SOURCES. The output is the same for the same
commits: nothing is drawn at random.
"""

import argparse
import ast
import csv
import io
import json
import re
import subprocess
from collections import defaultdict
from pathlib import Path

SOURCES = {
    "seal": ("fairyshine/Seal-Tools", "Apache-2.0"),
    "stable": ("THUNLP-MT/StableToolBench", "Apache-2.0"),
    "gorilla": ("ShishirPatil/gorilla", "Apache-2.0"),
    "alpaca": ("tangqiaoyu/ToolAlpaca", "Apache-2.0"),
    "mcp": ("toolsdk-ai/toolsdk-mcp-registry", "MIT"),
    "clinc": ("clinc/oos-eval", "CC BY 3.0"),
    "banking": ("PolyAI-LDN/task-specific-datasets", "CC BY 4.0"),
}


SERVER_LIST = str(Path("docs", "ALL-MCP-SERVERS.md"))


class Sources:
    """Reads files of the newest commit of each repository."""

    def __init__(self, folder: Path):
        self.folder = folder

    def git(self, key: str, *command: str) -> bytes:
        repository = self.folder / SOURCES[key][0].replace("/", "+") / "repo"
        return subprocess.run(
            ["git", "--git-dir", str(repository), *command], check=True, capture_output=True
        ).stdout

    def text(self, key: str, path: str) -> str:
        return self.git(key, "show", f"HEAD:{path}").decode("utf-8", "replace")

    def json(self, key: str, path: str):
        return json.loads(self.text(key, path))

    def lines(self, key: str, path: str):
        return [json.loads(line) for line in self.text(key, path).splitlines() if line.strip()]


def words_of(identifier: str) -> str:
    """Splits an identifier into lower-case words: getHealthWorkforce, get_health.workforce."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\-./]+", " ", identifier)
    return re.sub(r"\s+", " ", spaced).strip().lower()


def clean(text: str, limit: int = 400) -> str:
    return re.sub(r"\s+", " ", text).strip()[:limit]


def skill(name: str, description: str) -> str:
    """The text of a skill, as the gateway embeds it."""
    description = clean(description)
    return f"{name}: {description}" if description else name


def seal(sources: Sources):
    listed = sources.lines("seal", "Seal-Tools_Dataset/tool.jsonl")
    tools = {tool["api_name"]: tool["api_description"] for tool in listed}
    fields = defaultdict(list)
    for tool in listed:
        fields[tool["field"]].append(tool)
    field_of = {tool["api_name"]: fields[tool["field"]] for tool in listed}

    def neighbours(name: str, case) -> list[str]:
        """The other tools of the field that share most words, without those that the request calls."""
        called = {call["api"] for call in case["calling"]}
        own = bag(tools[name])
        others = [tool for tool in field_of[name] if tool["api_name"] not in called and tool["api_description"] != tools[name]]
        others.sort(key=lambda tool: -len(own & bag(tool["api_description"])))
        return [skill(words_of(tool["api_name"]), tool["api_description"]) for tool in others[1:4]]

    for part in ("dev", "test_in_domain", "test_out_domain"):
        for case in sources.lines("seal", f"Seal-Tools_Dataset/{part}.jsonl"):
            for name in dict.fromkeys(call["api"] for call in case["calling"]):
                if name in tools:
                    yield case["query"], skill(words_of(name), tools[name]), f"seal {name}", neighbours(name, case)


def stable(sources: Sources):
    """G1 trains and G2 and G3 develop. A tool that a development request needs trains nothing."""
    developed = {tool for case in stable_cases(sources, ("G2_instruction", "G2_category", "G3_instruction"))
                 for tool, _ in case["relevant APIs"]}
    for case in stable_cases(sources, ("G1_tool", "G1_instruction", "G1_category")):
        apis = {(api["tool_name"], api["api_name"]): api["api_description"] for api in case["api_list"]}
        for tool, api in case["relevant APIs"]:
            description = apis.get((tool, api))
            if description is not None and tool not in developed:
                others = [skill(f"{other}, {words_of(name)}", text) for (other, name), text in apis.items()
                          if [other, name] not in case["relevant APIs"]]
                yield case["query"], skill(f"{tool}, {words_of(api)}", description), f"stable {tool} {api}", others[:4]


def stable_cases(sources: Sources, parts):
    for part in parts:
        yield from sources.json("stable", f"solvable_queries/test_instruction/{part}.json")


def gorilla(sources: Sources):
    data = "berkeley-function-call-leaderboard/bfcl_eval/data"
    for part in ("simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple",
                 "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"):
        answers = {one["id"]: one["ground_truth"]
                   for one in sources.lines("gorilla", f"{data}/possible_answer/BFCL_v4_{part}.json")}
        for case in sources.lines("gorilla", f"{data}/BFCL_v4_{part}.json"):
            request = " ".join(turn["content"] for turn in case["question"][0] if turn["role"] == "user")
            called = {name for call in answers.get(case["id"], []) for name in call}
            for function in case["function"]:
                if function["name"] in called:
                    others = [skill(words_of(other["name"]), other["description"]) for other in case["function"]
                              if other["name"] not in called]
                    text = skill(words_of(function["name"]), function["description"])
                    yield request, text, f"bfcl {function['name']}", others[:4]
    yield from api_bench(sources)


def api_bench(sources: Sources):
    for part in ("huggingface_eval", "torchhub_train", "torchhub_eval", "tensorflow_eval"):
        seen = defaultdict(int)
        for case in sources.lines("gorilla", f"data/apibench/{part}.json"):
            instruction = instruction_of(case["code"])
            api = case["api_data"]
            description = api.get("description") or api.get("functionality") or ""
            key = f"apibench {api.get('api_name')}"
            seen[key] += 1
            if instruction is not None and description and seen[key] <= 4:
                domain = " ".join(str(api.get("domain", "")).split()[-4:])
                yield instruction, skill(domain, f"{api.get('functionality', '')}. {description}"), key, []


def instruction_of(code) -> str | None:
    found = re.search(r"[Ii]nstruction['\"#]*:?\s*['\"]?(.+?)['\"]?(?:,\s*['\"]?Output|\n|\\n|###|$)", str(code), re.S)
    text = clean(found.group(1).strip("'\" ,")) if found else ""
    return text if len(text) > 20 else None


def alpaca(sources: Sources):
    for part in ("eval_simulated", "eval_real"):
        for api in sources.json("alpaca", f"data/{part}.json"):
            descriptions = api["Function_Description"]
            if isinstance(descriptions, str):
                descriptions = ast.literal_eval(descriptions)
            instructions, answers = api.get("Instructions") or [], api.get("Golden_Answers") or []
            for request, answer in zip(instructions, answers):
                for action in dict.fromkeys(step["Action"] for step in answer):
                    text = descriptions.get(action, "").split("\n")[0]
                    if text:
                        done = {step["Action"] for step in answer}
                        others = [skill(f"{api['Name']}, {words_of(name)}", other.split("\n")[0])
                                  for name, other in descriptions.items() if name not in done]
                        name = f"{api['Name']}, {words_of(action)}"
                        yield request, skill(name, text), f"alpaca {api['Name']} {action}", others[:4]
    for api in sources.json("alpaca", "data/public_apis.json")["entries"]:
        yield api["Category"] + ": " + words_of(api["API"]), skill(api["API"], api["Description"]), f"public {api['API']}", []


def mcp(sources: Sources):
    """A tool of a server, and the description of the server: how one agent describes its skills and itself."""
    described = {}
    for line in sources.text("mcp", SERVER_LIST).splitlines():
        found = re.match(r"- \[\S+ (\S+)\]\([^)]*\): (.+?)\s+\(\d+ tools\)", line)
        if found and len(found.group(2)) > 30:
            described[found.group(1)] = found.group(2)
    for name, package in sources.json("mcp", "indexes/packages-list.json").items():
        tools = [tool for tool in package.get("tools", {}).values() if len(tool.get("description") or "") > 30]
        if name in described:
            for tool in tools[:3]:
                text = skill(words_of(tool["name"]), tool["description"].split("\n")[0])
                yield text, clean(described[name]), f"mcp {name}", []


def clinc(sources: Sources):
    data = sources.json("clinc", "data/data_full.json")
    yield from intents("clinc", ((text, intent) for part in ("train", "val", "test") for text, intent in data[part]), 20)


def banking(sources: Sources):
    rows = [row for part in ("train", "test")
            for row in csv.reader(io.StringIO(sources.text("banking", f"banking_data/{part}.csv")))][1:]
    yield from intents("banking", ((text, intent) for text, intent in rows if intent != "category"), 20)


def intents(name: str, cases, most: int):
    """Half of the texts of an intent train with its name, the others with a text of the same intent, as an example does."""
    texts = defaultdict(list)
    for text, intent in cases:
        texts[intent].append(text)
    for intent, group in sorted(texts.items()):
        for index, text in enumerate(group[:most]):
            yield text, words_of(intent) if index % 2 == 0 else group[index - 1], f"{name} {intent}", []


BUILDERS = (seal, stable, gorilla, alpaca, mcp, clinc, banking)


def bag(text: str) -> frozenset:
    return frozenset(re.findall(r"\w+", text.lower()))


class LeakCheck:
    """Finds texts that share most of their words with a text of the evaluation or development set."""

    def __init__(self, held_out, least: float = 0.7):
        self.bags = [bag(text) for text in held_out]
        self.by_word = defaultdict(set)
        for index, words in enumerate(self.bags):
            for word in words:
                self.by_word[word].add(index)
        self.least = least
        self.known = {}

    def leaks(self, text: str) -> bool:
        if text not in self.known:
            self.known[text] = self.check(bag(text))
        return self.known[text]

    def check(self, words: frozenset) -> bool:
        if len(words) < 4:
            return False
        shared = defaultdict(int)
        for word in words:
            for index in self.by_word.get(word, ()):
                shared[index] += 1
        return any(count / len(words | self.bags[index]) >= self.least for index, count in shared.items())


def development(sources: Sources):
    """Requests for two to four tools, and every tool and API of the six lists."""
    tools = defaultdict(dict)
    for case in stable_cases(sources, ("G1_tool", "G1_instruction", "G1_category", "G2_instruction", "G2_category", "G3_instruction")):
        for api in case["api_list"]:
            tools[api["tool_name"]][api["api_name"]] = clean(api["api_description"])
    queries = [
        {"query": case["query"], "tools": list(dict.fromkeys(tool for tool, _ in case["relevant APIs"]))}
        for case in stable_cases(sources, ("G2_instruction", "G2_category", "G3_instruction"))
    ]
    agents = [{"name": name, "skills": [{"name": api, "description": text} for api, text in apis.items()]}
              for name, apis in tools.items()]
    return {"agents": agents, "queries": queries}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--benchmark", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    sources = Sources(options.sources)
    developed = development(sources)
    queries = [json.loads(line)["query"] for line in (options.benchmark / "queries.jsonl").read_text().splitlines()]
    agents = json.loads((options.benchmark / "agents.json").read_text())
    check = LeakCheck([*queries, *(agent["description"] for agent in agents), *(one["query"] for one in developed["queries"])])
    pairs, counts = {}, defaultdict(lambda: [0, 0])
    for build in BUILDERS:
        for request, text, group, others in build(sources):
            request, text = clean(request), clean(text)
            count = counts[build.__name__]
            if len(request) < 8 or len(text) < 4 or (request, text) in pairs:
                continue
            if check.leaks(request) or check.leaks(text):
                count[1] += 1
                continue
            count[0] += 1
            others = [other for other in map(clean, others) if other != text and not check.leaks(other)]
            pairs[request, text] = group, others
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "pairs.jsonl").open("w") as file:
        for (request, text), (group, others) in pairs.items():
            pair = {"request": request, "skill": text, "group": group, "others": others}
            file.write(json.dumps(pair, ensure_ascii=False) + "\n")
    (options.out / "development.json").write_text(json.dumps(developed, ensure_ascii=False))
    for name, (kept, leaked) in counts.items():
        commit = sources.git(name, "rev-parse", "HEAD").decode().strip()
        print(f"{name:8} {kept:6} pairs, {leaked:4} left out by the leak check  {SOURCES[name][0]} {commit[:12]} {SOURCES[name][1]}")
    print(f"{len(pairs)} pairs; development set: {len(developed['queries'])} requests, {len(developed['agents'])} tools, "
          f"{sum(len(agent['skills']) for agent in developed['agents'])} APIs")


main()
