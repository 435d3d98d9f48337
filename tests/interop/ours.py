"""Our side: the server process (server.cpp) and the tool."""
import difflib
import itertools
import json
import re
import subprocess


class Refused(Exception):
    def __init__(self, answer):
        super().__init__(answer["message"])
        self.code, self.at = answer["refused"], answer.get("at")


def with_even_names(text):
    """The lines of a program, its loop variables, iters and buffers called by the order in which they are made."""
    lines, names, made = [], {}, itertools.count()
    for line in text.splitlines():
        found = re.match(r"\s*(?:for )?([\w, ]+?) (?:= T\.(?:axis|sblock_alloc_buffer|match_buffer)|in (?:T\.|range))", line)
        for name in found.group(1).split(", ") if found else ():
            names[name] = f"{'bv'[found.group(0).find('buffer') < 0]}{next(made)}"  # a name may be made again
        lines.append(re.sub(r"(?<![\w.\"])[A-Za-z_]\w*(?![\w(\"])", lambda m: names.get(m.group(0), m.group(0)), line))
    return lines


class Ours:
    def __init__(self, server, tilewright):
        self.tilewright = tilewright
        self.process = subprocess.Popen([server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, what, **arguments):
        self.process.stdin.write(json.dumps({"do": what, **arguments}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the server ended on {what} {json.dumps(arguments)}")
        answer = json.loads(line)
        if "refused" in answer:
            raise Refused(answer)
        return answer

    def difference(self, a, b):
        """None where both texts are one program up to names and the spelling of integer arithmetic, else what differs."""
        try:
            answer = self.ask("equal", a=a, b=b)
        except Refused as refused:
            return f"a program that is none here: {refused}"
        if answer["equal"]:
            return None
        diff = difflib.unified_diff(with_even_names(answer["a"]), with_even_names(answer["b"]), lineterm="", n=6)
        return "\n".join([answer["what"], *list(diff)[2:60]])

    def tool(self, *arguments):
        return subprocess.run([self.tilewright, *arguments], capture_output=True, text=True, check=True, timeout=250).stdout

    def tool_json(self, *arguments):
        return json.loads(self.tool(*arguments, "--json"))
