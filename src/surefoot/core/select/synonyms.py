"""Words that may stand for each other where tools are described: general English, and Chinese with English.

Written from general knowledge of what programs are asked to do; no benchmark's labels went into it. A synonym counts
less than the word itself. Source: spec/planning.md, section 15.
"""

from __future__ import annotations

from surefoot.core.select.tokens import words

_ENGLISH = """
    get fetch retrieve obtain read / find search lookup query discover locate / list show display view enumerate /
    create make generate build produce new / add insert append attach / delete remove erase clear discard cancel /
    update change modify edit alter adjust / set configure assign / send post submit deliver dispatch /
    save store write export record / open launch start begin run execute / stop end halt terminate close pause /
    convert transform translate change / compute calculate determine evaluate estimate solve /
    compare difference diff contrast / check verify validate test confirm / analyze examine inspect assess review /
    recommend suggest advise / summarize summary brief overview digest / buy purchase order acquire shop / sell sale /
    book reserve reservation booking schedule appointment / pay payment transfer / share publish /
    merge combine join concatenate / split divide separate / sort order rank /
    rank ranking trending popular top hot best / draw paint sketch plot / chart graph plot diagram visualize /
    picture image photo photograph / movie film cinema / song music track playlist / video clip / book novel /
    game play / email mail inbox / message chat text / phone call telephone / news headline article /
    paper article publication research study / job career employment vacancy /
    company business firm enterprise corporation / shop store retailer / product item goods merchandise /
    price cost fee rate quote / cheap discount coupon deal / stock share equity ticker / money currency cash /
    crypto cryptocurrency bitcoin ethereum blockchain / house home property apartment /
    hotel accommodation lodging stay / restaurant dining cafe food meal / recipe cook dish cuisine /
    travel trip tour journey itinerary vacation / flight plane airline airport / train railway rail /
    car vehicle automobile / route direction navigation path / map geography / place location address position /
    distance far length / near nearby around closest nearest / weather forecast temperature climate rain /
    date calendar day / time clock hour / event meeting / person people user / student pupil /
    teacher tutor instructor / doctor physician medical health / disease illness sickness / drug medicine medication /
    exercise workout fitness / law legal attorney lawyer / tax taxation / loan mortgage / document file doc /
    pdf document / presentation slide powerpoint / spreadsheet excel sheet workbook / word docx /
    website site webpage web url / link url / domain whois / picture photo / code program script software /
    repository repo github git / bug issue error problem / directory folder / database table sql /
    password passphrase credential / sum total add / average mean / multiply product / area surface / speed velocity /
    random arbitrary / chance probability odds / size dimension / quick fast rapid / history past historical /
    current present now latest / recent latest new / translate language / definition meaning define /
    horoscope astrology zodiac / joke humor funny / quiz trivia question / gift present / children kid child /
    pet dog cat animal / sport football soccer basketball / team club / league tournament / score result
"""
"""Groups: each word of a group may stand for each other one of it."""

_CHINESE = """
    天气 weather / 气温 temperature / 预报 forecast / 新闻 news / 资讯 news / 热门 trending popular /
    热点 trending hot / 热搜 trending hot / 热榜 trending / 趋势 trend / 榜单 rank ranking / 排行 rank ranking /
    股票 stock / 基金 fund / 汇率 exchange rate / 价格 price / 货币 currency / 车票 ticket / 余票 ticket /
    火车 train / 高铁 train / 列车 train / 车次 train / 车站 station / 航班 flight / 机票 flight ticket /
    酒店 hotel / 餐厅 restaurant / 菜谱 recipe / 地图 map / 路线 route / 导航 navigation route / 地址 address /
    城市 city / 位置 location / 附近 nearby / 距离 distance / 查询 query search / 搜索 search / 查找 find search /
    获取 get / 列出 list / 创建 create / 新建 create / 生成 generate / 添加 add / 删除 delete / 移除 remove /
    更新 update / 修改 update edit / 编辑 edit / 发送 send / 邮件 email / 消息 message / 短信 message /
    日历 calendar / 日程 schedule calendar / 日期 date / 时间 time / 提醒 reminder / 任务 task / 文件 file /
    文档 document / 文本 text / 表格 table spreadsheet / 图片 image / 图像 image / 照片 photo / 视频 video /
    音频 audio / 音乐 music / 歌曲 song / 歌词 lyrics / 播放 play / 电影 movie / 游戏 game / 图书 book /
    书籍 book / 论文 paper / 翻译 translate / 总结 summarize / 摘要 summary / 计算 calculate / 统计 statistics /
    平均 average / 转换 convert / 下载 download / 上传 upload / 保存 save / 读取 read / 写入 write / 打开 open /
    关闭 close / 运行 run / 代码 code / 程序 program / 网页 web page / 网站 website / 链接 link url /
    域名 domain / 数据 data / 数据库 database / 用户 user / 密码 password / 账户 account / 余额 balance /
    支付 pay payment / 转账 transfer / 订单 order / 购买 buy / 商品 product / 推荐 recommend /
    预订 book reservation / 预约 appointment / 分析 analyze / 图表 chart / 比较 compare / 随机 random /
    命令 command / 日志 log / 仓库 repository / 问题 issue problem / 学校 school / 学生 student / 课程 course /
    医院 hospital / 医生 doctor / 健康 health / 运动 sport / 体育 sport / 足球 football / 汽车 car / 八字 bazi /
    农历 lunar / 技术 technology / 科技 technology / 财经 finance / 经济 economic / 数码 digital electronics /
    消费 consumer / 优惠 discount deal / 人工 artificial / 智能 intelligent
"""
"""A Chinese word, and the English words for it."""


def _synonyms() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for group in _groups(_ENGLISH):
        for word in group:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in group if other != word))
    for group in _groups(_CHINESE):
        chinese = [word for word in group if not word.isascii()]
        english = [word for word in group if word.isascii()]
        for word, others in (*((word, english) for word in chinese), *((word, chinese) for word in english)):
            found.setdefault(word, {}).update(dict.fromkeys(others))
    return {word: tuple(others) for word, others in found.items()}


def _groups(table: str) -> list[list[str]]:
    return [words(group) for group in table.split("/")]


SYNONYMS = _synonyms()
"""Stem -> the stems, or pairs of Chinese characters, that may stand for it."""
