"""kubectl and helm without a cluster, for the role's own logic.

No API server can be had on the machines that this project is built on. These two programs keep a
file as "the cluster", answer in the form that the real ones were read to answer, and write down
each call. They say nothing about Kubernetes; they show what the role asks for, and when.

One file, two names: started as ``kubectl`` or as ``helm``. ``SPECRACK_FAKE_CLUSTER`` names the
folder with ``state.json`` and ``calls.jsonl``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

FOLDER = Path(os.environ["SPECRACK_FAKE_CLUSTER"])
EMPTY: dict[str, Any] = {
    "objects": {}, "crds": False, "release": None, "wait_fails": "", "kill_in": "",
}  # fmt: skip


def main() -> int:
    program, words = Path(sys.argv[0]).name, sys.argv[1:]
    text = sys.stdin.read() if "-" in words else ""
    with (FOLDER / "calls.jsonl").open("a") as calls:
        entry = {"call": [program, *words], "stdin": bool(text),
                 "kubeconfig": os.environ.get("KUBECONFIG")}  # fmt: skip
        calls.write(json.dumps(entry) + "\n")
    path = FOLDER / "state.json"
    state = EMPTY | (json.loads(path.read_text()) if path.exists() else {})
    status = (kubectl if program == "kubectl" else helm)(words, text, state)
    path.write_text(json.dumps(state))
    return status


def kubectl(words: list[str], text: str, state: dict[str, Any]) -> int:
    verb = words[0]
    if verb in ("diff", "apply"):
        return _diff_or_apply(verb, words, text, state)
    if verb == "wait":
        if state["wait_fails"] and state["wait_fails"] in " ".join(words):
            print("error: timed out waiting for the condition on rayservices/chat", file=sys.stderr)
            return 1
        return 0
    if verb == "get" and words[1].startswith("rayservice/"):
        print("3", end="")
    elif verb == "get" and words[1] == "configmaps":
        names = [key.split("/")[2] for key in state["objects"] if key.startswith("ConfigMap/")]
        print(" ".join(names), end="")
    elif verb == "get":
        print("pod/chat-gpu-worker 0/1 ImagePullBackOff")
    elif verb == "delete":
        names = words[words.index("--namespace") + 2 :]
        for key in [key for key in state["objects"] if key.split("/")[2] in names]:
            del state["objects"][key]
    return 0


def _diff_or_apply(verb: str, words: list[str], text: str, state: dict[str, Any]) -> int:
    name = words[words.index("--filename") + 1]
    documents = list(YAML(typ="safe").load_all(text if name == "-" else Path(name).read_text()))
    differs = False
    for one in documents:
        metadata = one["metadata"]
        namespace = metadata.get("namespace", "")
        if one["kind"] == "CustomResourceDefinition":
            state["crds"] = True
            continue
        if one["kind"] == "RayService" and not state["crds"]:
            print('error: resource mapping not found: no matches for kind "RayService" in version '
                  '"ray.io/v1"', file=sys.stderr)  # fmt: skip
            return 2
        present = f"Namespace//{namespace}" in state["objects"] or namespace == "kube-system"
        if namespace and not present:
            print(f'Error from server (NotFound): namespaces "{namespace}" not found',
                  file=sys.stderr)  # fmt: skip
            return 2
        key = f"{one['kind']}/{namespace}/{metadata['name']}"
        if state["objects"].get(key) != one:
            differs = True
            if verb == "apply":
                state["objects"][key] = one
    if verb == "diff" and differs:
        print("+ something differs")
        return 1
    return 0


def helm(words: list[str], _text: str, state: dict[str, Any]) -> int:
    verb = words[0]
    release = state["release"]
    if verb == "list":
        shown = [{key: release[key] for key in ("name", "chart", "status")}] if release else []
        print(json.dumps(shown))
    elif verb == "get":
        print(json.dumps(release["values"]))
    elif words[:2] == ["show", "crds"]:
        print("kind: CustomResourceDefinition\nmetadata: {name: rayservices.ray.io}")
    elif verb == "uninstall":
        state["release"] = None
    elif verb == "rollback":
        release["status"] = "deployed"
    elif verb == "upgrade":
        if release and release["status"].startswith("pending"):
            print("Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in "
                  "progress", file=sys.stderr)  # fmt: skip
            return 1
        values = Path(words[words.index("--values") + 1]).read_text()
        state["release"] = {
            "name": words[2],
            "chart": f"{words[3]}-{words[words.index('--version') + 1]}",
            "status": "deployed",
            "values": YAML(typ="safe").load(values),
        }
    return 0


if __name__ == "__main__":
    sys.exit(main())
