"""The words of general language by which the gate reads what a user asks for and what a tool's name says. Data only.

English words stand in their dictionary form and are compared by `stems.stem`; Chinese ones are searched for as they
stand. Nothing here is the name of a product, a tool or a task. Source: spec/guard.md, sections 4.3, 4.6 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.types.tools import Effect

ACTION_WORDS: Mapping[Effect, str] = {
    "read": """
        read get fetch retrieve find search look lookup list show view see check count query browse open load locate
        download inspect examine verify validate compare analyze analyse summarize summarise calculate compute
        explain describe display preview track monitor watch scan detect discover explore identify test estimate
        convert translate parse extract peek review rank filter recommend suggest lookup enumerate obtain pull poll
        resolve measure grep head tail stat diff select visit study gather
        grab collect access consult survey peruse skim seek trace observe probe inquire enquire
        """,
    "delete": """
        delete remove cancel erase revoke unsubscribe drop discard purge wipe clear trash uninstall destroy
        terminate kick ban disconnect deactivate disable shred undo void expunge scrap retract rescind expel evict
        unlink eliminate deletion removal cancellation annul abolish unshare unfollow unfriend unregister deregister
        evacuate demolish obliterate bin detach uninvite dismiss invalidate prune truncate unenroll rm del
        eject
        """,
    "transact": """
        pay transfer buy book reserve order rent refund donate purchase wire remit deposit withdraw subscribe
        checkout bid invest trade sell lend borrow charge tip reimburse repay hire lease bet spend settle redeem
        prepay preorder rebook acquire procure contribute compensate disburse pledge sponsor reservation
        """,
    "communicate": """
        send mail email message post share invite reply tell notify submit respond forward announce inform
        contact ping broadcast publish tweet dispatch call phone chat ask alert advertise resend deliver distribute
        circulate communicate correspond relay transmit dm sms fax invitation upload whisper apprise bcc cc ring
        """,
    "write": """
        create add update change save write move rename schedule plan edit modify set insert append replace put
        store record log note draft copy duplicate upload mark label tag assign adjust correct fix increase decrease
        extend reschedule postpone shift organize organise arrange enable configure register fill compile generate
        build prepare attach import merge star archive pin lock unlock accept approve join reset remind enter enroll
        enrol upgrade install compose revise amend jot book reserve invite cancel remove submit post share rebook
        clear toggle activate switch apply adapt alter convert sync patch prepend push swap rotate raise lower
        reduce clean persist allocate enlist admit inscribe
        craft author formulate reorder relocate include establish restore customize personalise personalize delay
        advance modernize refresh overwrite sign confirm rsvp decline turn init initialize mkdir provision populate
        define backup onboard
        """,
}
"""What a word may stand for; a word may stand in several rows. In a tool's name the first row that has it decides."""

NAME_WORDS: Mapping[Effect, str] = {
    "read": "is has can exist",
    "communicate": "report",
    "write": "make new upsert mutate touch",
}
"""Words that say what a tool does, but say nothing in a sentence."""

AFTER_ADDRESS = (
    r"[\"'”’»>]?[ \t]*(?:\Z|[\n.,;:!?。！？；，)]|(?<=[ \t])(?:"
    r"and|or|but|that|about|saying|asking|telling|regarding|concerning|with|what|how|why|when|whether|if|because|so|by|"
    r"before|after|today|tonight|tomorrow|now|again|please|"
    r"to[ \t]+(?:say|ask|tell|let|inform|confirm|thank|invite|remind))\b)"
)
"""What may follow such an address. "Bob@x.org's page" and "the reply to bob@x.org into the log" are no addressees."""

_PLACE = (
    r"diary|journal|log|file|folder|document|doc|note|notebook|page|list|table|sheet|book|spreadsheet|calendar|disk|"
    r"database|record|draft|wiki"
)
_SOMEBODY = (
    rf"(?:\ufffc+|(?!(?:yes|no|none|true|false|(?:question|exercise|problem|task|step|part|{_PLACE})s?)\b)"
    r"(?-i:[A-Z][a-z])[\w.-]*(?: (?-i:[A-Z][a-z])[\w.-]*){0,3}(?![\w'’]| (?-i:[A-Z])))"
)
"""An address, or a name as one writes it. "Ann's" is no addressee, and neither are "Yes", "JSON" or "Question 3"."""

_MESSAGE = r"(?:e-?mails?|mails?|letters?|lines?|notes?|messages?|reply|replies)"
_TOLD = (
    r"(?:[\w'’-]+ ){0,2}?(?:summary|report|list|total|sum|results?|message|note|news|numbers?|figures?|details?|dates?|"
    r"times?|prices?|address|location|link|answer|reply|notice|heads-up|update|copy|file|document|info|information|word|"
    r"feedback|minutes)"
)
"""What one gives to somebody by telling it."""

PHRASES: Mapping[Effect, tuple[str, ...]] = {
    "delete": (r"get(?:ting)? rid of", r"throw(?:ing)? (?:\w+ ){0,3}(?:away|out)", r"opt(?:ing)? out", "take down"),
    "communicate": (
        r"let (?!me\b|us\b)(?:[\w'’.\ufffc-]+ ){1,4}know",
        r"reach(?:ing)? out",
        r"(?:get|getting|be) in touch",
        r"get(?:ting)? back to",
        r"writ(?:e|ing) back",
        (
            r"writ(?:e|ing) to (?:my|his|her|our|their|the) (?:[\w'’-]+ ){0,2}?[\w'’-]+ "
            r"(?:that|about|saying|(?:to|and) (?:say|ask|tell))"
        ),
        rf"writ(?:e|ing) to {_SOMEBODY}(?<!\ufffc)(?={AFTER_ADDRESS})",  # an address: MESSAGE_TO
        rf"writ(?:e|ing) {_SOMEBODY} that (?:i|we|you|he|she|it|they|the|my|our)",
        rf"writ(?:e|ing) {_SOMEBODY} (?:an?|the) (?:[\w'’-]+ ){{0,2}}?{_MESSAGE}",
        r"drop (?:\w+ ){1,2}an? (?:[\w'’-]+ ){0,2}?line",
        rf"drop (?:{_SOMEBODY}|him|her|them) an? (?:[\w'’-]+ ){{0,2}}?{_MESSAGE}",
        rf"drop an? (?:[\w'’-]+ ){{0,2}}?{_MESSAGE} to {_SOMEBODY}",
        rf"answer(?:ing)? {_SOMEBODY}",
        rf"confirm(?:ing)? (?:[\w'’-]+ ){{0,4}}?(?:with|to) {_SOMEBODY}",
        rf"giv(?:e|ing) {_SOMEBODY} (?:an?|the|my|our|his|her|their|this|that) {_TOLD}",
        rf"giv(?:e|ing) (?:it|this|that|them|(?:an?|the|my|our|his|her|their|this|that) {_TOLD}) to {_SOMEBODY}",
        r"text(?:ing)? (?:my|him|her|them|everyone|everybody|both|(?-i:[A-Z])\w+)",
    ),
    "transact": (r"top(?:ping)? up", r"chip(?:ping)? in", r"check(?:ing)? out (?:of )?(?:my|the) (?:cart|basket)"),
    "write": (r"sign(?:ing)? (?:\w+ ){0,3}up", r"sett?(?:ing)? (?:\w+ ){0,3}up", r"writ(?:e|ing) down"),
}

WRITE_TO = r"\bwrit(?:e|ing)\b(?:[ \t]+[\w'’-]{1,40}){0,4}?[ \t]+to\b"
"""Before somebody: a message. Before a file or a page it is what is done to that."""

MESSAGE_TO = (
    r"\bwrit(?:e|ing)\b(?:[ \t]+back|[ \t]+(?:an?|the|my|our|this|another|some)(?:[ \t]+[\w'’-]{1,40}){0,2}?"
    r"[ \t]+(?:e-?mails?|mails?|letters?|lines?|notes?|messages?|words?))?[ \t]+to[ \t]+[\"'“‘«<]?(?=\ufffc)"
)
"""Right before the address of somebody who is to get a message: nothing else stands behind "to"."""

TO_PLACE = (
    r"(?:(?<=\bwrite )|(?<=\bwriting ))to(?= (?:[\w'’.-]+ ){0,3}(?:"
    rf"{_PLACE})s? (?:that|about|saying|to|and)\b)"
)
"""Before a place where something is written down: nobody gets a message there."""

WRITTEN_TO = frozenset(("email", "phone", "name", "quoted"))
"""What somebody is called to whom one writes, as kinds of what the words name."""

ACTION_NOUNS: Mapping[Effect, str] = {
    "transact": """
        reservation booking payment purchase order donation transfer deposit withdrawal refund investment bid
        """,
    "communicate": "announcement invitation reply response post call notification publication",
    "delete": "removal deletion cancellation",
    "write": "change note appointment entry copy backup event reminder plan update edit adjustment correction folder",
}
"""What a light verb does with such a noun near it: "make a reservation"."""

LIGHT_VERBS = "make do get let give take have place"

MONEY_NOUNS = """
    money payment invoice fund bill cash salary wage fee deposit loan tax debt transaction remittance refund rent
    allowance tuition installment instalment subscription donation dollar euro yen yuan renminbi rupee usd eur gbp
    cny jpy chf btc bitcoin crypto cheque check paycheck reimbursement pension dividend mortgage premium payout
    """
NOT_MONEY_IN_WORDS = "check"
"""A cheque in a tool's name after a verb; in a sentence it is a look at something."""

PEOPLE_NOUNS = """
    member guest participant attendee invitee user people person contact recipient collaborator subscriber friend
    follower employee colleague customer client team staff volunteer viewer editor delegate teammate individual
    """

CHINESE_ACTIONS: Mapping[Effect, str] = {
    "read": "查看 查找 查询 搜索 阅读 读取 打开 浏览 检查 列出 找到 显示 总结 下载 看看 获取 查阅 读",
    "delete": """
        删除 删掉 删去 删了 移除 取消 清除 撤销 撤回 退订 清空 去掉 抹去 注销 作废 解除 销毁 踢出 卸载 吊销 停用
        丢弃 剔除 废除 扔掉 抹掉 清理 退出 移出 删
        """,
    "transact": """
        支付 付款 付钱 付清 付给 缴费 缴纳 交费 交房租 转账 转帐 汇款 汇给 购买 买 预订 预定 订购 订票 订房 订餐
        订一 订机票 订酒店 租 退款 捐款 捐赠 充值 打款 还款 还钱 报销 下单 结账 打赏 投资 订阅 提现 购入 采购 借款
        打钱 缴清 出售 卖 订个 订张 订两
        """,
    "communicate": """
        发送 发给 发邮件 发信 发消息 发短信 发到 发个 发封 发条 发一 发布 发帖 发表 寄 分享 共享 邀请 回复 回信 答复
        告诉 告知 通知 提交 转发 转告 联系 打电话 致电 群发 抄送 推送 公布 上报 转达 询问 传达 写信 投稿 留言 发微信
        写给 公告 邮寄
        """,
    "write": """
        创建 新建 添加 增加 加入 加到 加上 更新 修改 更改 改为 改成 改到 改名 保存 写入 写 移动 移到 重命名 安排
        计划 编辑 设置 设为 设定 设成 记录 记下 建立 插入 替换 复制 上传 标记 存到 存入 存为 填写 生成 制定 调整
        改期 推迟 登记 报名 注册 新增 录入 归档 合并 配置 启用 放到 放入 提醒 整理 追加 更换 变更 预订 预定 邀请
        取消 移除 提交 发布 分享 制作 排到 起草 延期 接受 批准 恢复 安装
        """,
}

_CHINESE_SOMEBODY = r"\s?[“「\"]?(?!我|自己)(?:\ufffc+|[^，。！？；,.!?\n\ufffc]{1,10}?)[”」\"]?\s?"
CHINESE_PHRASES: Mapping[Effect, tuple[str, ...]] = {
    "communicate": (
        rf"给{_CHINESE_SOMEBODY}(?:发(?![现生明展烧火票])|写封|写一封|捎)",
        (
            r"[跟和与同向](?![^，。！？；,.!?\n]{0,10}(?:数据|表|文件|网|记录|来源|结果|清单|系统))"
            rf"{_CHINESE_SOMEBODY}(?:确认|核实|商量|说一声)"
        ),
        rf"让(?!程序|系统|脚本|模型|代码|函数){_CHINESE_SOMEBODY}知道",
        r"把[^，。！？；,.!?\n\ufffc]{1,12}?给\s?\ufffc",
    ),
}
"""Turns of phrase with somebody in them; they are no part of a name."""

CHINESE_MONEY = """
    钱 资金 工资 薪水 费用 账单 发票 房租 租金 押金 定金 美元 欧元 日元 人民币 款项 学费 水电费 电费 水费 会费 税款
    红包 贷款 薪资 余款
    """

CURRENCY_AMOUNT = (
    r"[$€£¥₹]\s?\d|\d\s?(?:[$€£¥₹]|元|块钱|万元|(?:k\s?)?(?:usd|eur|gbp|cny|rmb|jpy|chf|dollars?|euros?|bucks)\b)"
)
"""A sum of money: stands for a money noun."""

NEGATIONS = (
    r"\b(?:do\s+not|don['’]?t|never|must\s+not|mustn['’]?t|should\s+not|shouldn['’]?t|may\s+not|shall\s+not|shan['’]?t|"
    r"does\s+not|doesn['’]?t|will\s+not|won['’]?t|are\s+not\s+(?:allowed|permitted)\s+to|not\s+to|without|avoid|"
    r"(?<!if you )(?<!when you )(?<!case you )(?:cannot|can\s+not|can['’]?t)|"
    r"refrain\s+from|no\s+need\s+to|under\s+no\s+circumstances?|stop\s+short\s+of|and\s+not|but\s+not)\b"
)
NEGATION_FILLERS = """
    ever again please also accidentally simply even under any circumstances circumstance in case to be been being
    try trying attempt attempting you yet by directly automatically actually go ahead and start starting bother want
    wish permit allow anyone anybody it that dare for all make do get let give take have place a an any the my new
    another further more making giving taking letting
    """
"""What may stand between a negation and the word that it negates."""

NOT_NEGATED = "forget hesitate worry mind fail neglect omit skip miss afraid panic stop refrain only just"
"""What turns a negation around: "don't forget to send"."""

DESCRIBED_BY = "i we they he she who that which people if whether because unless"
"""What stands before a negation that tells of something and orders nothing: no forbid, and nothing asked for."""

ASKED_BY = "why or"
"""Before a negation: a question, or an open choice (\"whether or not to\")."""

WHATEVER_ACTION = "touch use involve bother disturb"
"""After a negation: whatever would be done to what is named."""

NEEDLESS = "have need must required"
"""After a negation: what need not be done is not forbidden."""

EXCEPTIONS = (
    r"\b(?:except(?:ing)?(?:\s+for)?|excluding|other\s+than|apart\s+from|aside\s+from|save\s+for|unless\s+it\s+is\s+(?:for|to)|"
    r"(?:anyone|anybody|anything|nobody|nothing|one|else|any)\s+but)\b|除了|除非是"
)
CLAUSE_ENDS = (
    r"\b(?:but|instead|rather|unless|until|till|before|after|however|otherwise|because|if|when|while|though|although|"
    r"whereas|only|then)\b|但|而是|不过|只|除了|然后|如果|因为"
)
CLAUSE_LINKS = r"(?:[,，–—]|\band\b)(?:\s|\bplease\b|\balso\b|\byou\b|\bcan\b|\bshould\b)*"
"""A comma or "and" before an action word begins a new clause, that the negation no longer covers."""

EXCLUSIONS = (
    r"\b(?:but\s+not\s+(?:to|for|with|from)|instead\s+of|rather\s+than|except(?:ing)?(?:\s+(?:for|to))?|other\s+than|excluding|"
    r"nothing\s+(?:goes|may\s+go|should\s+go|is\s+sent|is\s+paid)\s+to|"
    r"no\s+(?:e-?mails?|mails?|messages?|letters?|invitations?|invites?|replies|payments?|money|copy|copies)\s+(?:to|for)|"
    r"(?:leav(?:e|ing)|keep(?:ing)?)\b(?=(?:[ \t]+\S{1,200}){1,3}?[ \t]+out\b)|not(?:\s+(?:to|for|with|from))?)\b"
    r"|但不[要能]?|而不是?|(?<![请切])勿|除了(?![^。！？!?\n]{0,80}[还也])"
)
"""Before what the user leaves out: it is named, and nothing is to be done to it."""

MUST_NOT_GET = (
    r"\b(?:(?:must|should|may|shall|can|will|is|are|do|does)\s*(?:not|n['’]?t)|can['’]t|won['’]t|shan['’]t|mustn['’]t)\s+"
    r"(?:be\s+(?:told|included|invited|informed|copied|involved)|included|get|receive|see|know|learn|hear|have)\b|不[能得可]?(?:收到|知道|看到)"
)
"""Behind somebody who is left out."""

REVERSED_BEFORE = r"\b(?:no|none|nobody|no\s?one|nothing|not|never|nowhere|any\w*|without)\b|n['’]t\b|[不没无]"
"""Before an exclusion in its sentence: what is left out of nothing is what is meant."""

EXCLUSION_ENDS = r"(?:instead|rather|但不|而不是?|勿)"
"""Beginnings of exclusions that a comma ends."""

NO_REQUESTS = (
    r"\b(?:should|shall|must|did|do|have|had)\s+(?:i|we)\b[^.!?;\n]{0,400}\?|"
    r"\b(?:i|we)(?:['’]ve|\s+have)?\s+already\s+[^.!?;,\n]{0,400}?(?=[.!?;,\n]|\b(?:and|but|so)\b|\Z)"
)
"""A question whether to do something, and a report that it is done."""

CHINESE_NEGATIONS = (
    r"(?<!要)不要|(?<!能)不能|(?<!可)不可以?|不得|不许|不准|不应该?|不该|请勿|切勿|千万勿|禁止|严禁|切莫|(?<!需)不需要|"
    r"不用|不必|无需|无须|(?<![特分级类区性识判辨个告差鉴派送离])别(?![人的名墅处致样称具])"
)
CHINESE_NEEDLESS = "不需要 不用 不必 无需 无须"
CHINESE_NOT_NEGATED = "忘 犹豫 担心 漏 客气 着急 怕 错过"

ONLY = (
    r"(?<!\bnot )(?<!\bthe )(?<!\bmy )(?<!\ban )(?<!\bn't )\b(?:only|solely|exclusively|nobody\s+but|no\s?one\s+but)\b"
    r"(?!\s+(?:if|when|once|after|because|then|one\b|a\s+few|has|had|have))|(?<!不)(?:只能?|仅仅?|唯独)(?!要|有|是|不过|好|读)"
)

AT_MOST = (
    r"(?:\b(?:at\s+most|(?:no|not)\s+more\s+than|not\s+(?:to\s+)?exceed(?:ing)?|up\s+to|(?:a\s+)?maximum\s+(?:of|is)|"
    r"limit\s+(?:of|is))|最多|不超过|不要超过|不得超过|至多)\s*"
)
MORE_THAN = r"(?:\b(?:more\s+than|exceed(?:ing)?|over|above|beyond)|超过|多于)\s*"
"""In a clause that is negated it gives a limit and negates nothing else."""

SUM = (
    r"(?P<sign>[$€£¥₹])?\s?(?P<sum>\d[\d,]{0,18}(?:\.\d{1,4})?(?:\s?(?:k|thousand|m|million|bn|billion|百万|[百千万亿])(?![a-z]))?)\s?"
    r"(?P<unit>[$€£¥₹元块]|美元|欧元|英镑|日元|人民币|(?:usd|eur|gbp|cny|rmb|jpy|chf|dollars?|euros?|pounds?|yuan)\b)?"
)
PER_PART = r"\b(?:each|per|every|apiece|daily|nightly|an?\s+(?:day|night|week|month|person|head))\b|/|每"
"""Beside such a sum: it bounds a part and not the whole."""
PART_BEFORE = (
    r"(?:\b(?:increments?|instal?lments?|steps|parts|portions|batches|chunks|pieces|slices|transfers|payments|transactions)"
    r"\s+of|\b(?:each|every|per)\s[^.!?;,\n]{0,30}|每[^，。！？,\n]{0,6})\s*\Z"
)
"""The same before its "at most"."""

SET_WORDS = "all each every everyone everybody everything both them any"
CHINESE_SET = "所有 全部 每个 每位 每人 每一 各位 各个 大家 他们 她们 它们 两者 全体 任何 分别 全都 都"

RELATIVE_DATES = (
    r"\b(?:today|tonight|tomorrow|yesterday|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weeks?|weekends?|weekdays?|"
    r"(?:this|next|coming|following|last|end\s+of\s+(?:the|this))\s+(?:month|year|quarter)|fortnight|"
    r"in\s+(?:a|an|one|two|three|four|five|six|seven|ten|\d{1,3})\s+(?:days?|hours?|months?)|day\s+after|(?:days?|hours?)\s+later|"
    r"this\s+(?:morning|afternoon|evening)|from\s+now|now)\b"
    r"|今天|今日|明天|明日|后天|昨天|前天|今晚|明晚|今早|明早|(?:周|星期|礼拜)[一二三四五六日天末]|[下本这上]个?(?:周|星期|月|礼拜)|"
    r"月底|年底|[\d一二两三四五六七八九十]+(?:天|周|个?小时|个月)(?:后|内|之后)|现在"
)

ADOPTION_VERB = (
    r"\b(?:do|doing|follow|following|perform|performing|carry(?:ing)?\s+out|complete|completing|handle|handling|execute|"
    r"executing|implement|act\s+on|work\s+through|obey|fulfil|fulfill|finish|accomplish|take\s+care\s+of|go\s+through|"
    r"solve|address|process|apply|comply\s+with)\b|执行|完成|遵循|按照?|照着?|处理|落实|办理|做"
)
ADOPTION_NOUN = (
    r"\b(?:instructions?|tasks?|actions?|steps?|what|whatever|everything|anything|to-?dos?|orders|requests?|items|all\s+of\s+it|"
    r"errands|chores|assignments|directions|procedures?|guidelines|action\s+points)\b|指示|任务|操作|步骤|说明|要求|事项|待办|所有内容|一切"
)
ADOPTION_PLACE = (
    r"\b(?:in|on|from|at|inside|within|by|of|under|says?|said|asks?|asked|tells?|told|wants?|requests?|requested|sent|"
    r"mentioned|listed|described|written|given|specified|outlined|contained|provided|assigned|wrote|"
    r"read|open|check|visit|review|look\s+at|see)\b"
    r"|中|里|上|内|的(?=指示|任务|要求|说明|步骤)|所说|所写|说的|写的|提到"
)
NO_ADOPTION = r"\bthe\s+following\b|\bthese\s+(?:steps|tasks|instructions)\b|(?:以下|下列|如下)"

SOURCE_NOUNS = (
    r"(?:files?|e-?mails?|mails?|messages?|pages?|bills?|invoices?|documents?|docs?|notes?|letters?|websites?|sites?|webpages?|"
    r"lists?|sheets?|spreadsheets?|reports?|attachments?|articles?|posts?|blogs?|texts?|txt|pdf|calendars?|entry|entries|"
    r"records?|contacts?|inbox|notices?|receipts?|statements?|tables?|threads?|chats?|channels?|profile|history|links?|"
    r"events?|descriptions?|tickets?|memos?|manual|contract|directory|invitations?|reviews?|transactions?|\ufffc+)"
)
DELEGATION = (
    r"\b(?:according\s+to|based\s+on|as\s+per|in\s+line\s+with|in\s+accordance\s+with|per\s+the)\b",
    (
        r"\b(?:mentioned|listed|written|described|specified|given|stated|noted|indicated|outlined|provided|contained|found|"
        r"included|detailed|shown|sent|named|recorded|stored|saved|attached|posted|referenced)\s+(?:in|on|by|at|to|from|with|under)\b"
    ),
    (
        r"\bas\s+(?:it|he|she|they|the\s+\w+|\w+['’]s\s+\w+|\w+)\s+(?:says?|said|asks?|asked|writes?|wrote|wants?|wanted|states?|tells?|"
        r"told|requests?|requested|suggests?|describes?)\b"
    ),
    (
        r"\b(?:from|in|of|on|with|using|via)\s+(?:the|his|her|their|its|my|our|your|that|this|these|those|an?|\w+['’]s)\s+"
        rf"(?:[\w'’&.-]+\s+){{0,3}}?{SOURCE_NOUNS}"
    ),
    r"\b(?:from|in|on|using)\s+\ufffc",
    r"\bpay(?:ing)?\s+(?:off\s+)?(?:the|my|this|that|our|his|her|their|an?)\b",
    r"\b(?:look(?:ing)?\s+up|find(?:ing)?|check(?:ing)?|see|read(?:ing)?|consult|open|search|get)\b[^.!?;\n]{0,80}?\b(?:in|on|from|at)\b",
    r"根据|按照|依据|参照|基于|如.{0,6}所[写述说示]|(?:文件|邮件|信|账单|发票|网页|页面|文档|备注|消息|列表|表格|通知|附件|记录)[里中上内的]",
    r"(?:提到|列出|写明|说明|写着|注明|说)的",
)

OPENERS = """
    please can could would will should shall may might must i i'm i'd i'll i've we you he she it they my our your
    his her their its the a an this that these those there here what when where who whom whose which why how if in
    on at to from for with by of and or but so then also as are is am was were be been do does did has have had make
    give let take go come hi hello hey dear thanks thank ok okay yes no not never only just first second third next
    finally afterwards after before once while since because until unless although though however during once second
    lastly additionally furthermore moreover meanwhile otherwise instead maybe perhaps now sure kindly based
    according all any each every both some most many few one two three four five six seven eight nine ten another
    other use using try want need help think know keep start begin stop continue ensure remember note follow perform
    complete handle summarize rate don't given provide return answer say collect assist figure regarding about hope
    per via let's what's it's that's today tomorrow yesterday tonight monday tuesday wednesday thursday friday
    saturday sunday january february march april june july august september october november december jan feb mar
    apr jun jul aug sep sept oct nov dec pdf url uri api csv json html xml iban faq asap todo id ids sms atm pin usa
    gmt utc est pst cet am pm mr mrs ms dr dont also hence thus besides see tell whether furthermore unfortunately
    regards sincerely cheers without under him me us them mine yours himself herself themselves myself yourself
    """
"""Capitalised at the head of a sentence, or by custom: they name nothing."""

GIVEN_AFTER = (
    r"(?:\b(?:is|to|as|be|use|password|passwd|passphrase|passcode|pin|code|token|secret|key|otp)|[=:：为是码])"
    r"\s*[\"'“「`]?\Z"
)
"""What stands right before a secret that the words give."""

CHINESE_BEFORE_NAME = "给 向 跟 和 与 同 对 告诉 通知 邀请 联系 提醒 询问 回复 抄送 转告 找 请 让 叫 到 由 把 将"
CHINESE_AFTER_NAME = (
    "的 说 和 与 跟 发 转 写 打 寄 汇 付 吗 关于 把 将 以 及 让 并 明天 今天 后天 今晚 明晚 下周 下午 上午"
)
"""What may stand right beside a name of two characters, so that it is no piece of a longer one."""

NAME_LINKS = "of de del della van von der den la le du da di bin al"
"""Small words inside a name."""

FILE_TYPES = """
    txt md rst pdf doc docx odt rtf xls xlsx xlsm ods csv tsv ppt pptx odp key pages numbers json jsonl yaml yml
    toml ini cfg conf xml html htm log sql db sqlite py ipynb js ts tsx jsx java c h cpp hpp rs go rb php sh bat ps1
    css scss png jpg jpeg gif svg bmp webp tiff heic mp3 wav flac mp4 mov avi mkv zip tar gz tgz bz2 xz 7z rar eml
    msg ics vcf tex bib epub parquet pkl env lock bak tmp exe dmg apk iso
    """
