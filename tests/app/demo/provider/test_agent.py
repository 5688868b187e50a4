"""The default model does what the last user message says, the same way each time."""

import json

import pytest

from app.demo.provider.agent import Agent, ciphertext, last_user_message, offered_tools
from app.demo.provider.ids import Ids
from app.demo.provider.items import kind_of
from app.demo.provider.replies import Asked
from tests.support.provider import output_of, user


def tool(name, **parameters):
    return {"type": "function", "name": name, "parameters": parameters}


EXEC = tool("exec_command", type="object", properties={"cmd": {"type": "string"}}, required=["cmd"])


def ask(*items, **body):
    asked = Asked(
        body={"model": "gpt-5.5", **body}, transcript=items, input=items, new_id=Ids("test")
    )
    return list(Agent()(asked).items)


def calls(items):
    return [item for item in items if kind_of(item).endswith("_call")]


def test_run_calls_codexs_tool_with_the_command():
    [call] = calls(ask(user("run echo hi"), tools=[EXEC]))
    assert (call["name"], call["arguments"]) == ("exec_command", '{"cmd":"echo hi"}')


def test_after_the_output_comes_the_answer():
    [first] = calls(ask(user("run echo hi"), tools=[EXEC]))
    rest = ask(user("run echo hi"), first, output_of(first["call_id"]), tools=[EXEC])
    assert [kind_of(item) for item in rest] == ["reasoning", "message"]
    assert rest[-1]["phase"] == "final_answer"


def test_n_times_is_n_calls_one_after_another():
    history = [user("please run make test 3 times")]
    for _ in range(3):
        [call] = calls(ask(*history, tools=[EXEC]))
        assert call["arguments"] == '{"cmd":"make test"}'
        history += [call, output_of(call["call_id"])]
    assert calls(ask(*history, tools=[EXEC])) == []


def test_in_parallel_is_all_calls_at_once_unless_forbidden():
    text = user("run ls 3 times in parallel")
    assert len(calls(ask(text, tools=[EXEC]))) == 3
    assert len(calls(ask(text, tools=[EXEC], parallel_tool_calls=False))) == 1


def test_without_tools_or_with_choice_none_it_answers():
    assert calls(ask(user("run ls"))) == []
    assert calls(ask(user("run ls"), tools=[EXEC], tool_choice="none")) == []


def test_a_required_choice_calls_the_first_tool_once():
    [call] = calls(ask(user("hello"), tools=[EXEC], tool_choice="required"))
    assert call["name"] == "exec_command"


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (
            {
                "type": "object",
                "properties": {
                    "command": {"type": "string"},
                    "timeout": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                },
                "required": ["command", "timeout"],
            },
            {"command": "ls -l", "timeout": 1},
        ),
        (
            {"type": "object", "properties": {"command": {"type": "array"}}},
            {"command": ["bash", "-lc", "ls -l"]},
        ),
        (
            {"type": "object", "properties": {"m": {"enum": ["r", "w"]}, "f": {"type": "boolean"}}},
            {"m": "r", "f": False},
        ),
        ({}, {}),
    ],
)
def test_arguments_fit_the_tools_schema(schema, arguments):
    [call] = calls(ask(user("run ls -l"), tools=[tool("bash", **schema)]))
    assert json.loads(call["arguments"]) == arguments


def test_a_tool_is_called_by_name():
    tools = [EXEC, tool("read_file", properties={"path": {}}, type="object")]
    [call] = calls(ask(user("use the read_file tool"), tools=tools))
    assert (call["name"], call["arguments"]) == ("read_file", '{"path": "path"}')


def test_a_tool_in_a_namespace_is_called_with_it():
    spawn = tool("spawn_agent")
    tools = [{"type": "namespace", "name": "multi_agent_v1", "tools": [spawn]}]
    [call] = calls(ask(user("spawn an agent: say hi"), tools=tools))
    assert (call["namespace"], call["arguments"]) == ("multi_agent_v1", '{"message": "say hi"}')


def test_a_lite_models_tools_stand_in_the_input_and_take_a_script():
    inner = {"type": "custom", "name": "exec"}
    namespace = {"type": "namespace", "name": "functions", "tools": [inner]}
    item = {"type": "additional_tools", "role": "developer", "tools": [namespace]}
    [call] = calls(ask(item, user("run hi")))
    assert (call["type"], call["input"]) == ("custom_tool_call", 'text("hi");')
    assert "namespace" not in call


def test_reasoning_has_ciphertext_only_if_asked_for():
    with_it = ask(user("x"), include=["reasoning.encrypted_content"])[0]
    assert with_it["encrypted_content"].startswith("gAAAA")
    assert "encrypted_content" not in ask(user("x"))[0]


def test_reasoning_has_a_summary_only_if_asked_for():
    assert ask(user("x"))[0]["summary"] == []
    assert len(ask(user("x"), reasoning={"summary": "auto"})[0]["summary"]) == 1


def test_an_older_model_does_not_reason():
    assert [kind_of(item) for item in ask(user("x"), model="mock-model")] == ["message"]


def test_it_refuses_when_told_to():
    assert ask(user("refuse this"))[-1]["content"][0]["type"] == "refusal"


def test_the_length_of_the_answer():
    text = ask(user("answer in 100 words"))[-1]["content"][0]["text"]
    assert len(text.split()) == 101


def test_the_same_request_has_the_same_answer_and_another_another():
    assert ask(user("a")) == ask(user("a"))
    assert ask(user("a")) != ask(user("b"))


def test_the_last_user_message_is_found_with_what_came_after_it():
    text, after = last_user_message((user("a"), user("b"), output_of("c")))
    assert (text, len(after)) == ("b", 1)
    assert last_user_message(({"role": "user", "content": "short"},)) == ("short", ())
    assert last_user_message(()) == ("", ())


def test_tools_without_a_name_are_not_offered():
    asked = Asked({"tools": [{"type": "web_search"}, EXEC]}, (), (), Ids())
    assert list(offered_tools(asked)) == ["exec_command"]


def test_ciphertext_is_a_function_of_its_seed():
    assert ciphertext(b"a") == ciphertext(b"a") != ciphertext(b"b")
    assert len(ciphertext(b"a")) > 300
