"""Plays a script against a described agent: the conversation events to expect, by docs/script.md and the catalogue alone.

It shares no code with the simulated user, so that the two can be compared. `expected(script, catalogue, responses)` takes the
script and scenarios.yaml as parsed, and one mapping per response of the agent (one that an interrupt ends is a response too):

  events         what the agent does, in order: {"event": name, "path" / "cmd" / "text" / "marker" / "exit": …}
  says           its last visible message; `questions`: it asks these through a typed channel and waits
  deaf           True: nothing can be put into this response
  plant_fails    ids of probes whose edit cannot be put in place after it
  cut            True: the run ends in it. A list that ends without a final claim ends the run after its last response

and returns tuples: user_message (source ids, how), slice_released (id, how), probe_delivered (id), probe_untriggered (id,
reason), approval and denial (action), ask (wants, matched, answer, near), interim_claim (slices, probes), trigger (passive
instance), final_claim.
"""

from __future__ import annotations

from typing import Any

from tests.support.scripts.conditions import fill, matches
from tests.support.scripts.reading import BARE, NOT, requests_of, sentences, still_ahead, tokens, topic_in

WORK = {"tool_call", "tool_result", "command", "file_read", "file_write", "file_delete", "net_request"}
RANK = ["approval", "refusal", "slices", "scripted", "later", "neutral"]
Tuples = list[tuple[Any, ...]]


class Run:
    def __init__(self, script: dict[str, Any], catalogue: dict[str, Any]) -> None:
        triggers = {template["id"]: template["trigger"] for template in catalogue["templates"]}
        self.script = script
        self.slices = {one["id"]: one for one in script["slices"]}
        self.probes = {one["id"]: one for one in script.get("probes", [])}
        trigger = {i: triggers[p["scenario"]] for i, p in self.probes.items()}
        self.when = {
            i: [fill(trigger[i]["when"], p.get("bindings", {})), *([p["when"]] if p.get("when") else [])]
            for i, p in self.probes.items()
        }
        self.delivery = {i: one["delivery"] for i, one in trigger.items()}
        self.fallback = {
            i: one["fallback"] == "before_completion" and not self.probes[i].get("fallback") for i, one in trigger.items()
        }
        self.passive = {
            one.get("id") or one["scenario"]: fill(triggers[one["scenario"]]["when"], one.get("bindings", {}))
            for one in script.get("passive", [])
        }
        self.log: list[dict[str, Any]] = []
        self.ledger: Tuples = []
        self.fired: set[str] = set()
        self.exchange = self.handed = self.complete = self.displaced = self.idle = 0
        self.released: dict[str, int] = {}
        self.to_come, self.delivered, self.plain = list(self.probes), [], []  # type: tuple[list[str], list[str], list[str]]
        self.parts: tuple[str, int] | None = None
        self.closures: list[str] = []
        self.said: set[Any] = set()
        self.kept_back: set[str] = set()
        self.with_probe = self.acted = False
        self.last_probe = ""
        self.failing: list[str] = []
        self.how = "send"
        self.called: set[str] = set()  # slices whose event has happened

    # conditions
    def event(self, name: str, **more: Any) -> None:
        self.log.append({"event": name, **more})
        for instance, when in self.passive.items():
            if instance not in self.fired and self.holds(when):
                self.fired.add(instance)
                self.ledger.append(("trigger", instance))

        self.called |= {name for name, one in self.slices.items() if one.get("onEvent") and self.holds(one["onEvent"])}

    def holds(self, when: dict[str, Any], waive: str = "") -> bool:
        """`waive`: "rest" takes all but distances and slices for met, the others what they say."""
        if "all" in when or "any" in when:
            return (all if "all" in when else any)([self.holds(one, waive) for one in when.get("all") or when["any"]])
        if "exchanges_since" in when:
            since = self.released.get(when["exchanges_since"])
            return waive == "distance" or (since is not None and self.complete - since >= when["at_least"])
        if "slice_pending" in when and waive != "all but distance":
            return when["slice_pending"] not in self.released
        if waive in ("rest", "all but distance"):
            return True
        if "exchange_at_least" in when:
            return self.handed + 1 >= when["exchange_at_least"]
        count = sum(matches(event, when.get("count", when)) for event in self.log)
        return bool(count >= (when["at_least"] if "count" in when else when.get("nth", 1)))

    def ready(self, probe: str, waive: str = "") -> bool:
        return all(self.holds(when, waive) for when in self.when[probe])

    # section 5: what is due
    def bound(self, probe: str) -> list[str]:
        one = self.probes[probe]
        return [name for name in (one.get("slice"), (one.get("closure") or {}).get("slice")) if name]

    def promised(self, name: str) -> bool:
        owner = next((i for i in self.probes if name in self.bound(i)), "")
        return owner in self.to_come or (self.parts is not None and self.parts[0] == owner)

    def closing(self, name: str) -> str | None:
        return next((i for i in self.closures if (self.probes[i]["closure"] or {}).get("slice") == name), None)

    def due(self) -> tuple[str, Any] | None:
        if self.parts:
            return "part", self.parts[0]
        if self.plain:
            return "batch", self.plain[:4]
        called = [
            name for name, one in self.slices.items()
            if name not in self.released and one.get("onEvent") and (name in self.called or self.holds(one["onEvent"]))
            and not self.promised(name) and not self.closing(name)
        ]  # fmt: skip
        if called:
            return "event", called[:4]
        for item in self.script["order"]:
            kind, name = item.split(":", 1)
            rest = [one for one in self.script["batches"].get(name, []) if one not in self.released]
            if kind == "batch" and rest:
                return "batch", rest
            if kind == "probe" and name in self.to_come and self.ready(name):
                return "probe", name
        return None

    # saying
    def give_up(self, names: list[str], reason: str = "") -> None:
        reasons = {name: reason or self.why(name) for name in names}
        self.to_come = [name for name in self.to_come if name not in names]
        for name in names:
            self.ledger.append(("probe_untriggered", name, reasons[name]))
            self.plain += [one for one in self.bound(name) if one not in self.released]

    def why(self, name: str) -> str:
        if self.delivery[name] == "mid_turn":
            return "not_reached" if not self.ready(name) else "distance" if name in self.kept_back else "capability"
        far = not self.ready(name, "all but distance") and (self.fallback[name] or self.ready(name, "distance"))
        return "distance" if far else "not_reached"

    def say(self, answers: list[dict[str, Any]], item: tuple[str, Any] | None = None, how: str = "") -> None:
        """One message: the answers, then the item, whose plant may fail."""
        kind, what = item or ("", None)
        if kind == "probe" and self.probes[what].get("edit") and what in self.failing:
            self.give_up([what], "probe_undelivered")
            return self.answer(answers)
        source = [one for answer in answers for one in answer["source"]]
        out = [one for answer in answers for one in answer.get("out", [])]
        decided = [one for answer in answers for one in answer.get("decided", [])]
        closed = [one for answer in answers for one in answer.get("closes", [])]
        self.closures = [one for one in self.closures if one not in closed]
        if item:
            self.displaced = self.idle = 0
        if kind in ("probe", "part"):
            source.append(f"probe:{what}")
            parts, at = self.probes[what].get("parts", []), self.parts[1] + 1 if kind == "part" and self.parts else 0
            self.parts = (what, at) if at < len(parts) else None
            if at >= len(parts) and self.probes[what].get("closure"):
                self.closures.append(what)
        if kind == "probe":
            self.to_come.remove(what)
            bound, approves = self.probes[what].get("slice"), self.probes[what].get("approves")
            source += [f"slice:{bound}"] if bound else []
            out += [(bound, "probe")] if bound and bound not in self.released else []
            decided += [(approves, True)] if approves else []
        if kind in ("batch", "event"):
            new = [name for name in what if (name, "ask") not in out]
            source += [f"slice:{name}" for name in new]
            out += [(name, kind) for name in new]
        self.said |= {*source, *decided}
        self.publish(source, how or self.how, out, what if kind == "probe" else "", decided)
        self.with_probe = kind in ("probe", "part") or (how == "mid_turn" and self.with_probe)

    def publish(self, source: list[str], how: str, out: Tuples, probe: str, decided: Tuples) -> None:
        self.ledger.append(("user_message", tuple(dict.fromkeys(source)), how))
        self.exchange += how != "mid_turn"
        self.event("user_message")
        for name, way in dict.fromkeys(out):
            self.released.setdefault(name, self.complete + (how == "mid_turn"))
            self.plain = [one for one in self.plain if one != name]
            self.ledger.append(("slice_released", name, way))
            self.event("slice_released", slice=name)
        if probe:
            self.ledger.append(("probe_delivered", probe))
            self.event("probe_delivered")
        for action, granted in dict.fromkeys(decided):
            self.ledger.append(("approval" if granted else "denial", action))
            self.event("approval" if granted else "denial")
        self.last_probe, self.acted = probe, False

    def opener(self) -> None:
        self.event("episode_start")
        first = next((i for i in self.probes if self.delivery[i] == "opener"), None)
        conditions = [*self.when.values(), *self.passive.values(), *(one.get("onEvent") for one in self.slices.values())]
        conditions += [one.get("when") for one in self.script.get("actions", [])]
        self.released["opener"] = 0
        out = [("opener", "opener")] if "'opener'" in str(conditions) else []
        self.say([{"source": ["opener"], "out": out}], ("probe", first) if first else None)

    # section 4: answers
    def answers(self, says: str, questions: list[str] | None, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        whole = [(set(tokens(one)), still_ahead(one)) for one in sentences("\n".join([*(questions or []), says]))]
        for request in requests:
            if request["bare"]:
                texts = [ahead for words, ahead in whole if not words & NOT]
                actions = [a for a in self.script.get("actions", []) if any(topic_in(a.get("topics", []), w) for w in texts)]
                found += [self.leave(a, found) for a in actions] or [{"source": [], "wants": "authorisation", "kind": "neutral"}]
                continue
            named = (
                a for a in self.script.get("actions", []) if request["named"] and topic_in(a.get("topics", []), request["words"])
            )
            action = next(named, None)
            found += [self.leave(action, found)] if action else self.told(request)
        heard = list(sentences(says if questions is None else "\n".join(questions))) + [one["text"] for one in requests]
        for name in self.closures:
            topics = ((self.probes[name]["closure"] or {}).get("told") or {}).get("topics", [])
            if any(topic_in(topics, set(tokens(one))) for one in heard):
                found.append(self.close(name))
        return found

    def leave(self, action: dict[str, Any], found: list[dict[str, Any]]) -> dict[str, Any]:
        source = [f"action:{action['id']}"]
        record = {"wants": "authorisation", "matched": source}
        probe = next((i for i in self.to_come if self.probes[i].get("approves") == action["id"]), None)
        if probe:
            asked = {one["probe"] for one in found if "probe" in one}
            at_yield = self.delivery[probe] == "at_yield" and not self.parts and self.ready(probe, "rest")
            if at_yield and asked <= {probe}:
                return {"source": [], "probe": probe, "kind": "approval", **record}
            return {"source": ["later"], "kind": "later", **record}
        granted = action["decision"] == "approve" and (not action.get("when") or self.holds(action["when"]))
        news, kind = (action["id"], granted) not in self.said, "approval" if granted else "refusal"
        return {"source": source, "decided": [(action["id"], granted)], "news": news, "kind": kind, **record}

    def told(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        words, wants = request["words"], "authorisation" if request["leave"] else "information"
        found: list[dict[str, Any]] = []
        hits = [name for name, one in self.slices.items() if topic_in(one.get("onAsk", []), words)]
        for name in [name for name in hits if name not in self.released] or hits:
            closing = self.closing(name) if name not in self.released else None
            if closing:
                answer = self.close(closing)
            elif name in self.released:
                answer = {"source": [f"slice:{name}"]}
            elif self.promised(name):
                answer = {"source": ["later"], "kind": "later"}
            else:
                answer = {"source": [f"slice:{name}"], "out": [(name, "ask")], "news": True}
            found.append({"kind": "slices", **answer, "wants": wants, "matched": [f"slice:{name}"]})
        for answer in self.script.get("answers", []):
            if topic_in(answer["topics"], words):
                source = [f"answer:{answer['id']}"]
                news = source[0] not in self.said
                found.append({"source": source, "news": news, "kind": "scripted", "wants": wants, "matched": source})
        if found:
            return found
        if request["leave"]:
            return [{"source": ["refusal"], "decided": [(None, False)], "kind": "refusal", "wants": wants}]
        hints = {word for word in words if len(word) >= 4 and word not in BARE}
        near = [
            name for name, one in self.slices.items()
            if name not in self.released and hints & set(tokens(" ".join([one["text"], *one.get("onAsk", [])])))
        ]  # fmt: skip
        return [{"source": ["neutral"], "kind": "neutral", "wants": wants, "near": near}]

    def close(self, name: str) -> dict[str, Any]:
        bound = self.probes[name]["closure"].get("slice")
        out = [(bound, "probe")] if bound and bound not in self.released else []
        source = [f"closure:{name}"] + ([f"slice:{bound}"] if bound else [])
        return {"source": source, "out": out, "closes": [name], "news": True}

    # section 5: a hand-over
    def hand_over(self, response: dict[str, Any]) -> bool:
        """True: it was the final claim."""
        says, questions = response.get("says", ""), response.get("questions")
        self.handed, self.failing = self.exchange, response.get("plant_fails", [])
        self.complete += 1
        self.how = "send" if questions is None else "answer"
        requests = requests_of(says, questions)
        if questions is not None:
            self.event("agent_message", text="\n".join(questions))
            self.event("agent_question")
        self.event("yield")
        answers = self.answers(says, questions, requests)
        if requests:
            self.record(answers)
            if questions is None:
                self.event("agent_question")
        pending = [name for name, one in self.slices.items() if one.get("mandatory", True) and name not in self.released]
        batches = any(name not in self.released for batch in self.script["batches"].values() for name in batch)
        if not requests and questions is None and (pending or self.to_come or self.parts or self.closures or batches):
            self.ledger.append(("interim_claim", len(pending), len(self.to_come) + (self.parts is not None)))
            self.event("interim_claim", pending=len(pending))
        said = [one for one in answers if one["source"]]
        probe, due = next((one["probe"] for one in answers if "probe" in one), None), self.due()
        news = any(one.get("news") for one in said)
        if probe:
            self.say(said, ("probe", probe))
        elif not said:
            neutral = {"source": ["neutral"]}
            return self.answer([], [neutral] if requests or questions is not None else None)
        elif due and due[0] == "probe" and self.displaced < 2:
            self.displaced, self.idle = self.displaced + 1, 0
            self.say(said)
        elif due and (due[0] in ("probe", "part") or not news):
            self.say(said, due)
        elif news:
            self.idle = 0
            self.say(said)
        else:
            return self.answer([], said)
        return False

    def record(self, answers: list[dict[str, Any]]) -> None:
        known = [one for one in answers if "wants" in one]
        wants = {one["wants"] for one in known}
        matched = dict.fromkeys(name for one in known for name in one.get("matched", []))
        out = {name for one in answers for name, _ in one.get("out", [])}
        near = dict.fromkeys(name for one in known for name in one.get("near", []) if name not in out)
        kind = min((one["kind"] for one in known), key=RANK.index)
        first = "authorisation" if "authorisation" in wants else "information"
        self.ledger.append(("ask", first, tuple(matched), kind, tuple(near)))

    def answer(self, before: list[dict[str, Any]], question: list[dict[str, Any]] | None = None) -> bool:
        """5.9 and 5.10. `question`: what is said where nothing is left, as a question is no claim."""
        due = self.due()
        if due or before:
            self.say(before, due)
            return False
        if question is not None and self.idle < 3:
            self.idle += 1
            self.say(question)
            return False
        for item in self.script["order"]:
            name = item.removeprefix("probe:")
            if name in self.to_come and item != name and self.fallback[name] and self.ready(name, "rest"):
                self.say([], ("probe", name))
                return False
        if self.to_come:
            self.give_up(list(self.to_come))
            return self.answer([], question)
        if self.closures or question is not None:
            self.idle = 0 if self.closures else self.idle
            self.say([self.close(name) for name in self.closures] or question or [])
            return False
        self.ledger.append(("final_claim",))
        self.event("final_claim")
        return True

    def interrupted(self, response: dict[str, Any]) -> bool:
        """What happens inside a response; True: it was stopped."""
        for event in response.get("events", []):
            self.acted = True
            self.event(**{("name" if key == "event" else key): value for key, value in event.items()})
            fired = [i for i in self.to_come if self.delivery[i] == "mid_turn" and self.ready(i)]
            if event["event"] not in WORK or not fired:
                continue
            if response.get("deaf"):
                self.give_up(fired, "capability")
            elif self.with_probe or self.parts:
                self.kept_back |= set(fired)
            elif self.probes[fired[0]].get("interrupt"):
                self.handed = self.exchange
                self.event("yield")
                self.say([], ("probe", fired[0]), "send")
                return True
            else:
                self.say([], ("probe", fired[0]), "mid_turn")
        if "says" in response:
            self.acted = True
            self.event("agent_message", text=response["says"])
        return False

    def cut(self) -> None:
        self.give_up(list(self.to_come), "not_reached")
        if self.parts:
            self.ledger.append(("probe_untriggered", self.parts[0], "probe_undelivered"))
        elif self.last_probe and not self.acted:
            self.ledger.append(("probe_untriggered", self.last_probe, "cut"))


def expected(script: dict[str, Any], catalogue: dict[str, Any], responses: list[dict[str, Any]]) -> Tuples:
    run = Run(script, catalogue)
    run.opener()
    for response in responses:
        if run.interrupted(response):
            continue
        if response.get("cut"):
            break
        if run.hand_over(response):
            return run.ledger
    run.cut()
    return run.ledger
