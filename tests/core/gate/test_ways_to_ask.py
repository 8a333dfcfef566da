"""Plain ways to ask for a message: with somebody behind them they grant communicate, without they do not."""

import pytest

from cases import cases
from surefoot.core.gate.intent import read_words

ASKED = """
Write to ann@x.example.
Write to Ann Lee.
Write to Ann and Bob.
Write Bob a note about the rent.
Write Ann Lee an e-mail.
Write Ann that I am late.
Let Ann know.
Let ann@x.example know that it is done.
Let Ann and Bob know when it is ready.
Let my boss know that I am ill.
Let the team know about it.
Drop Ann a line.
Drop a line to Ann.
Drop ann@x.example a line about Friday.
Drop Ann Lee a quick line.
Answer ann@x.example.
Answer Ann that Friday is fine.
Answer Bob's mail with yes.
Answer the mail from Bob.
Confirm with Ann that Friday works.
Confirm with ann@x.example.
Confirm the date with Ann Lee.
Confirm to Ann that we come.
Give Ann the address of the hotel.
Give ann@x.example the total.
Give Ann Lee a short summary of the meeting.
Give the summary to ann@x.example.
Give the summary to Bob.
Give Ann a heads-up.
写信给张三
给张三写信
给张三写封信，说我迟到了
写信给 ann@x.example
告诉张三我迟到了
通知张三明天开会
回复张三的邮件
跟张三确认时间
和 Ann 确认一下周五的会议
与张三核实地址
向张三确认
给 ann@x.example 发一份总结
给 ann@x.example 发总结
给张三发总结
答复张三
让张三知道我到了
把总结给 ann@x.example
"""

NOT_ASKED = """
Do not write to Bob.
Don't write to bob@x.example.
Never write Bob a note.
Write a file.
Write down the total.
Write the total to out.txt.
Write the totals to the file Budget.
Write a summary of Ann Lee's report to notes.txt.
Write a poem about Ann.
Write Ann's address down.
Write Python code that adds two numbers.
Write Alice's and Bob's scores to scores.csv.
Write a story for Ann in story.txt.
Write Monday's numbers into the table.
Write JSON to out.txt.
Write "ann@x.example" into contacts.txt.
Write ann@x.example into the list.
Write ann@x.example to contacts.txt.
Answer the question.
Answer in French.
Answer with one number.
Answer Yes or No.
Answer only in JSON.
Answer the question about Ann.
Answer what Ann Lee earns.
Answer from the page about Paris.
Answer the questions in the file Tasks.
Give the total.
Give me the total.
Give Ann's score.
Give the score of Ann.
Give Ann Lee's address.
Give me the address of ann@x.example.
Give the average of Alice and Bob.
Give a list of the people in London.
Give Germany's population.
Let me know.
Let us know what you find.
Let me know what Ann said.
Let me know the total.
Don't let Ann know.
Do not let bob@x.example know about it.
Drop the first line.
Drop a line from the file.
Drop the table Users.
Drop Ann from the list.
Drop the line to Ann.
Confirm the total.
Confirm that Ann is in the list.
Confirm with a second calculation.
Confirm with the file prices.csv.
Confirm the date.
Don't confirm with Ann.
Do not confirm the date with Ann.
Do not give Ann the address.
Don't give bob@x.example the total.
Don't answer Bob.
Do not answer bob@x.example.
Don't drop Ann a line.
不要写信给张三
不要告诉张三
别通知张三
不要跟张三确认
不要给 ann@x.example 发总结
写一个文件
写下总数
写一封信存到 letter.txt
回答问题
给出总数
给我总数
给我发现的问题列个清单
确认总数
跟昨天的数据确认一下
把张三的地址写到文件
给张三建一个文件夹
Write Python that adds two numbers.
Write a Python function to parse Dates.
Give the distance from Paris to London.
Give directions to Rome.
Give the answer to Question 3.
Give an introduction to Python.
Give Germany's capital.
Give France a score from 1 to 10.
Answer Exercise 4.
Answer Ann's question in the file.
Confirm Ann's age with the table.
Write to Notes.
Write the report to Reports/may.txt.
Write Chapter 3.
给文件改名
给出发现的问题
跟表格里的数据核实一下
让程序知道路径
"""


@pytest.mark.parametrize("words", ASKED.strip().splitlines())
def test_a_message_to_somebody_is_asked_for(words: str) -> None:
    assert "communicate" in read_words(words).effects_asked


@pytest.mark.parametrize("words", NOT_ASKED.strip().splitlines())
def test_no_message_is_asked_for(words: str) -> None:
    assert "communicate" not in read_words(words).effects_asked


@cases("gate/ways_to_ask")
def test_the_same_words_forbid_it(words: str) -> None:
    forbidden = [c.condition for c in read_words(words).constraints.constraints]
    assert ("communicate", ("Bob Miller",)) in [(one.effect, one.forbidden_targets) for one in forbidden]
