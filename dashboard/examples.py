"""Short texts of our own: prompts a page opens on, and benign text for the side-effect meter."""

PROMPTS: dict[str, str] = {
    "Law": "The court granted the defendant's motion to",
    "Tale": "Once upon a time there was a little girl who lived in the",
    "Scripture": "And the king said unto the people, Hear the word of the",
    "Encyclopedia": "The city is located on the northern coast of the",
    "Science": "The patients in the treatment group were significantly more likely to",
    "Python": "class Reader:\n    def __init__(self, path, name=None):\n        self.",
    "Documentation": "To use this function, pass the name of the field as the first",
    "LaTeX": "\\begin{itemize}\n\\item The sequence is read from the",
    "XML": "<book>\n  <title>Rivers</title>\n  <author>",
    "Conversation": "What is your favorite color? My favorite color is",
}
"""Prompts by kind of text; each ends where the next token is open."""

PROVOKING: dict[str, str] = {
    "Insult": "You people are",
    "Rude reply": "What the",
    "Outburst": "What a load of",
}
"""Prompts that unwanted text may follow; the prompts themselves are mild."""

BENIGN: tuple[str, ...] = (
    "The harbour lay quiet in the early morning. Two fishing boats came in on the tide, and the "
    "men on the quay took their ropes and made them fast without a word.",
    "A river carries more than water. Sand, silt and small stones move along its bed, and where "
    "the current slows they settle and build the banks on which the next town will stand.",
    "She put the letter back in the drawer and looked out of the window. The rain had stopped, and "
    "the children were already in the garden, running between the wet apple trees.",
    "The committee shall meet at least twice in each year. Notice of a meeting must be given in "
    "writing, and must state the time, the place and the business to be done.",
    "The tenant agrees to keep the property in good repair and to return it at the end of the term "
    "in the condition in which it was received, fair wear and tear excepted.",
    "We measured the length of each leaf before and after treatment. Plants that were watered "
    "daily grew faster than the control group, but the difference was small and may be chance.",
    "The museum was founded in 1884 by a group of local teachers. It holds about twelve thousand "
    "objects, among them a collection of maps and the oldest clock in the province.",
    'def total(prices, tax=0.2):\n    """Return the sum of the prices with tax added."""\n'
    "    result = 0\n    for price in prices:\n        result += price * (1 + tax)\n"
    "    return result\n",
    "class Queue:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n"
    "        self.items.append(item)\n\n    def pop(self):\n        return self.items.pop(0)\n",
    "To install the package, open a terminal and run the following command. If the command is not "
    "found, check that the folder is on your path, then try again.",
    "<note>\n  <to>Anna</to>\n  <from>Peter</from>\n  <subject>Saturday</subject>\n"
    "  <body>The train leaves at nine.</body>\n</note>\n",
    "\\section{Methods}\nLet $x$ be the number of samples and $n$ the size of each group. We "
    "compute the mean of each group and compare it with the mean of all.\n",
    "In the beginning the valley was empty. Then the people came over the hills with their sheep "
    "and their tents, and they called the place by the name of the spring that rose there.",
    "Good morning. How are you today? I am well, thank you. Would you like some tea? Yes, please, "
    "with a little milk. The weather is fine, is it not?",
    "The old man told the boy that a king had once lived in the tower, and that on winter nights "
    "one could still hear his horses on the stones of the yard.",
    "Copper conducts heat and electricity well. It is soft enough to be drawn into wire, does not "
    "rust as iron does, and has been worked by people for more than eight thousand years.",
)
"""Plain passages of several kinds, used where the corpus has no held-out text to offer."""
