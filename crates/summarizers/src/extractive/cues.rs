//! The cue phrases: closed-class English wording that shows what a sentence does.
//!
//! To add a cue, add a line to the list of its class. The notation:
//!
//! | notation | meaning |
//! |---|---|
//! | `(a\|b\|)` | alternatives; an empty one makes the group optional |
//! | `forbid*` | the word may go on: `forbids`, `forbidden` |
//! | `^ok` | at the start of the statement alone |
//! | `.no ` | at the start of the statement or of a sentence in it |
//! | `forget _ and` | `_` is any one word |
//! | `step #` | `#` is a digit |
//!
//! Phrases match whole words, in lower or upper case, and `'` also stands for the typographic apostrophe.

use super::phrases::CueTable;

/// A set of cue classes, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cues(u64);

macro_rules! cue_classes {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl Cues {
            $($(#[$doc])* pub(crate) const $name: Self = Self(1 << $bit);)*
        }
    };
}

cue_classes! {
    /// Something must not be done.
    PROHIBITION = 0;
    /// A negation that is a prohibition unless somebody says it of themselves (`I don't have`).
    NEGATION = 1;
    /// Something must be done, or a limit holds.
    OBLIGATION = 2;
    /// A rule holds for more than one turn.
    SCOPE = 3;
    /// A rule holds for the whole session: the strongest form of scope.
    SESSION = 4;
    /// A wish about how.
    PREFERENCE = 5;
    /// A plan or a decision.
    DECISION = 6;
    /// Something remains to be done.
    OPEN = 7;
    /// Something is the case.
    STATE = 8;
    /// A value has changed.
    UPDATE = 9;
    /// An earlier plan is withdrawn.
    OVERRIDE = 10;
    /// All earlier plans are withdrawn.
    RESET = 11;
    /// The assistant gives up a line of work.
    ABANDON = 12;
    /// A person and what they are responsible for.
    OWNER = 13;
    /// The assistant offers help; says nothing.
    OFFER = 14;
    /// Asks for one thing, once.
    REQUEST = 15;
    /// Leaves the topic.
    TANGENT = 16;
    /// Acknowledges; says nothing.
    ACKNOWLEDGEMENT = 17;
    /// A failure, as tools word it.
    ERROR = 18;
    /// Opens a task: likely the goal.
    NEW_GOAL = 19;
    /// `ignore the ...`: an override together with [`Cues::EARLIER`].
    IGNORE = 20;
    /// Refers to what was said before.
    EARLIER = 21;
    /// Introduces the plan inside a sentence that also names the topic.
    PLAN_CLAUSE = 22;
    /// A test's good outcome, as tools word it.
    OUTCOME = 23;
    /// Says in so many words what the task is.
    TASK_STATED = 24;
    /// Attribute slot: a sum of money.
    ABOUT_MONEY = 32;
    /// Attribute slot: a date something is due.
    ABOUT_DEADLINE = 33;
    /// Attribute slot: a code name.
    ABOUT_CODENAME = 34;
    /// Attribute slot: a time zone.
    ABOUT_TIME_ZONE = 35;
    /// Attribute slot: who is on call.
    ABOUT_ON_CALL = 36;
    /// Attribute slot: the branch worked on.
    ABOUT_BRANCH = 37;
    /// Attribute slot: the style of answers.
    ABOUT_ANSWERS = 38;
    /// Attribute slot: a pass code.
    ABOUT_PASSCODE = 39;
    /// Attribute slot: the day of a recurring meeting.
    ABOUT_WEEKDAY = 40;
    /// Attribute slot: the language of examples.
    ABOUT_EXAMPLES = 41;
    /// Attribute slot: the next step.
    ABOUT_NEXT_STEP = 42;
    /// Attribute slot: the phase of a plan.
    ABOUT_PHASE = 43;
}

impl Cues {
    /// No class at all.
    pub(crate) const NONE: Self = Self(0);

    /// Whether any class of `other` is in the set.
    pub(crate) fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets together.
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Every cue, by class. A phrase may stand in several classes.
pub(crate) const CUE_TABLE: CueTable = &[
    (
        Cues::PROHIBITION,
        &[
            "never",
            "(must|shall|should) not",
            "(mustn't|mustnt|shan't|shouldn't)",
            "(you|we|they|nobody) may not",
            "not (allowed|permitted|acceptable)",
            "forbid*",
            "prohibit*",
            "off(-| )limits",
            "under no circumstances",
            "hands off",
            ".leave _ alone",
            ".leave (the|my|our|all|these|those) _ alone",
            "keep _ (unchanged|untouched|intact)",
            "keep (the|my|our|all) _ (unchanged|untouched|intact)",
            "nothing (may|must|shall) be",
            "(can't|cannot) break",
            "avoid",
            "(nobody|no one) (else|pushes|touches|deletes|changes|edits|merges|deploys|writes|uses)",
            "(i|we) (don't|do not|dont) want (you|any|anyone|anybody|to see|force*|that|it|us|new)",
            "no exception*",
            "(ban|banned)",
            "stay (away|unpushed)",
            "refrain",
            "let's not",
            ".no ",
            "without (explicit |my |prior |written |second |)(approval|consent|permission|sign-off|signoff|sign off|asking|confirm*|a second)",
        ],
    ),
    (
        // Prohibitions unless said of oneself: `I do not have the file` forbids nothing.
        Cues::NEGATION,
        &["do not", "(don't|dont)", "not (touch|push|edit|change|send|use)", "not do (that|this|it)"],
    ),
    (
        Cues::OBLIGATION,
        &[
            "(must|always|require|required|requires|should|shall|ensure|only|mandatory|exactly)",
            "(has|have) to",
            "(need|needs) to",
            "make sure",
            "be sure",
            "at all times",
            "at (most|least)",
            "no (more|less|later|earlier) than",
            "stick to",
            "hard (rule|limit|line|constraint)",
            "non-negotiable",
            "(cap|capped|limit|limited|ceiling|deadline|budget)",
            "before (pushing|release|merging|deploy*|you|answering)",
        ],
    ),
    (
        Cues::SCOPE,
        &[
            ".always ",
            "from (now|here) on",
            "going forward",
            "henceforth",
            "for the rest of",
            "rest of (this|the) (session|conversation|chat)",
            "for the remainder",
            "this session",
            "whenever",
            "every (time|reply|response|answer|message|number|commit|change|file)",
            "each (time|reply|response|answer|commit)",
            "in (your|all) (repl*|respons*|answer*)",
            "(any|every|all) (reply|replies|response|responses|tool call|tool calls|command|commands)",
            "(before|when|whenever|after|while) you",
            "(unless|until) i",
            "until (the |)user",
            "as long as",
            "throughout",
        ],
    ),
    (
        Cues::SESSION,
        &[
            "from (now|here) on",
            "going forward",
            "henceforth",
            "rest of",
            "remainder of",
            "every (reply|response|answer|message|number)",
            "in your replies",
            "(always|never)",
            "(before|when) you",
        ],
    ),
    (
        Cues::PREFERENCE,
        &[
            "prefer*",
            "(i|we|user)('d| would|) (like|likes|rather|want|wants|need|needs)",
            "(wants|please|style|tone|terse|concise|brief|briefly|verbose|playful|formal|metric|imperial)",
            "rather than",
            "over (a|the)",
            "instead of",
            "not (javascript|imperial|digits|prose)",
            "bullet point*",
        ],
    ),
    (
        Cues::DECISION,
        &[
            ".(actually|wait|no), (use|make|keep|put|take|move|do|don't|leave|go|change|call|name|write|store)",
            "(plan|plans|planning)( is|):",
            "approach:",
            "(decided|decides|decide|deciding|decision|decisions)",
            "(we'll|we will|we are going to|we're going to|we should|we could)",
            "let's",
            "(i've|i have|i) been planning",
            "i think (we|it)",
            "going (with|to)",
            "(go|went) with",
            "(chose|chosen|choose)",
            "(agree|agreed)",
            "(settle|settled|settling) on",
            "(opt|opted) (for|to)",
            "(final|finalize|finalized|finalise|finalised)",
            "(approve|approved)",
            "instead",
            "switch*",
            "pivot*",
            "abandon*",
            "reject*",
            "replac*",
            "(rebase|rebased)",
            "(it|that) is(,|) then",
            "no _ then",
            "no _, then",
            "the plan is",
            "new direction",
            "scratch",
            "supersed*",
            "(moved|changed) to",
            "consensus",
            "(commit|committed) to",
            "(attempting|trying)",
        ],
    ),
    (
        Cues::OPEN,
        &[
            "(todo|fixme|pending|blocked|awaiting|unresolved|tbd)",
            "remaining (work|task|tasks|step|steps|item|items|issue|issues|test|tests|failure|failures|question|questions)",
            "(is|are|still) remaining",
            "^remaining:",
            "(remains|remain) (to|open|unclear)",
            "next (step|up|steps|task|action)",
            "still (need|needs|to|fails|fail|failing|open|have)",
            "not (yet |)(done|fixed|implemented|finished)",
            "waiting (for|on)",
            "open (question|item|issue|questions|items|issues)",
            "follow(-| )up",
            "left to do",
            "to be (done|decided|fixed)",
            "(need|needs) (fixing|to be|review)",
            "after this",
            "in draft",
            "come back to",
        ],
    ),
    (
        Cues::STATE,
        &[
            "(done|complete|completed|completes|finished|fixed|implemented|created|updated|added|removed|deployed)",
            "(pass|passes|passed|passing|fail|fails|failed|failing|failure)",
            "(error|exception|traceback|panicked|current|currently|now|running|phase|branch|commit|version|status)",
            "in progress",
            "(step|steps) #*",
            "based on",
            "(merged|pushed|confirmed|booked|canceled|cancelled|success*|verified|written|compiled|installed|started)",
            "reproduc*",
            "root cause",
            "(found|located|owner|owns|hosted)",
            "exit (code|status)",
            "checked out",
            "(run|runs) (in|on)",
            "(live|lives) (in|at)",
        ],
    ),
    (
        Cues::UPDATE,
        &[
            "(now|new|instead|rather|revised|actually|correction|corrected|renamed|retired|postponed|bumped|raised|lowered)",
            "(change|changed|changes|move|moved|moves|update|updated|updates)",
            "no longer",
            "rotat*",
            "(switched|rebased)",
            "replac*",
            "supersed*",
        ],
    ),
    (
        Cues::OVERRIDE,
        &[
            "scratch (that|this|all|everything|the)",
            "forget (that|about|the|it|what)",
            "forget _ and",
            "change of (plan|plans|direction|heart)",
            "(never mind|nevermind)",
            "disregard",
            "cancel that",
            "on second thought",
            "pivot*",
            "(we're|we are) (not|no longer) (going|doing)",
            "no longer (the plan|want|doing|going)",
            "(reverse|reversed|reversing) (that|the|my|our|course)",
            "(revert|reverted|reverting) (that|the decision|course)",
            "(actually|wait)(,|) (wait|no|let's|scratch|instead|i|we)",
            "instead(,|) (let's|we)",
            "let's (not|instead|switch|flip)",
            "(drop|kill|dump|ditch|swap|replace) (the|that|our)",
            "off the table",
            "overrid*",
            "supersed*",
            "is (out|dead|dropped)",
            "(change|changed) my mind",
            "new (plan|direction|approach)(:| is)",
            "(flip|flipped|flipping) (to|it|that)",
            "final answer",
            "let me revise",
            "total reset",
            "(start|starting) over",
            "go with _ instead",
            "only direction now",
        ],
    ),
    (Cues::IGNORE, &["ignore (the|that|my|what|everything|all)"]),
    (Cues::EARLIER, &["(earlier|previous|said|above|instruction|plan|before)"]),
    (
        Cues::RESET,
        &[
            "scratch (all|everything)",
            "ignore everything",
            "total reset",
            "(start|starting) over",
            "full pivot",
            "forget (everything|all)",
            "clean slate",
            "forget _ and",
            "final answer",
        ],
    ),
    (
        Cues::ABANDON,
        &["^abandon*", "^giving up on", "^dropping", "^reverting", "^rolled back", "^backing out"],
    ),
    (
        Cues::OWNER,
        &[
            "(own|owns|owner|lead|leads|leading|drive|drives|driving|handle|handles|handling|responsible|assigned)",
            "in charge",
            "(reviewer|reviewers|contact|manage|manages|head|heads|takes|covers)",
            "->",
            "→",
        ],
    ),
    (
        Cues::OFFER,
        &[
            "let me know",
            "happy to",
            "ready when you",
            "(anything|something) else",
            "shall we",
            "want me to",
            "would you like",
            "i can (answer|address)",
            "how can i",
            "feel free",
            "you're welcome",
            "is there anything",
            "refocus",
        ],
    ),
    (
        Cues::REQUEST,
        &[
            "(i|we)('d| would|) (also |just |really |)(like|want|need|have) (you |)to",
            "(can|could|would|will) you",
            "(can|could) (i|we)",
            "help (me|us)",
            "^(yes, |yes |)please ",
            "please proceed",
        ],
    ),
    (
        Cues::TANGENT,
        &[
            "^(oh |oh, |hey |hey, |)(by the way|btw|side note|off-topic|off topic|unrelated|random thought|randomly)",
            "^(oh |oh, |hey |hey, |)quick (tangent|question unrelated|aside)",
            "^(oh |oh, |hey |hey, |)(just curious|fun fact|i just remembered|i was thinking about)",
            "^(oh |oh, |hey |hey, |)(do you happen to|what's the weather)",
        ],
    ),
    (
        Cues::ACKNOWLEDGEMENT,
        &[
            "^(ok|okay|sure|got it|noted|acknowledged|understood|thank|thanks|great|perfect|sounds good|makes sense)",
            "^(agreed|yes|yep|no|right|fair point|fair enough|i hear you|happy to|of course|absolutely)",
            "^(you're welcome|hello|hi|good morning|good afternoon)",
        ],
    ),
    (
        Cues::ERROR,
        &[
            "(error|errors|failed|failure|failures|fatal|exception|traceback|segfault|denied|undefined|cannot|refused|warning)",
            "panic*",
            "assertionerror",
            "(typeerror|valueerror|keyerror|syntaxerror|importerror|modulenotfounderror|runtimeerror)",
            "not found",
            "no such file",
            "exit (code|status)",
            "(timed out|time out|timeout)",
        ],
    ),
    (Cues::OUTCOME, &["passed"]),
    (
        Cues::NEW_GOAL,
        &[
            "help (me|us)",
            "(i|we)('d| would|) (want|need|like|have to)",
            "let's",
            "(can|could) you",
            "please",
            "(plan|planning) (the|a|for)",
            "working on",
            "the task",
            "(start|starting) (the|a|on|work)",
            "(set up|setup|building|goal)",
        ],
    ),
    (Cues::PLAN_CLAUSE, &["(let's|we'll|we will|i think|we should)", "(current |the |)plan:", "approach:"]),
    (
        Cues::TASK_STATED,
        &[
            "(current|my|our|the|main|overall) (task|goal|objective|mission|aim) is",
            "(i'm|i am|we're|we are) working on",
        ],
    ),
    (Cues::ABOUT_MONEY, &["(budget|ceiling|cap|capp|capped|limit)", "spend*", "cost*", "expense*"]),
    (
        Cues::ABOUT_DEADLINE,
        &["(deadline|due|freeze|scheduled)", "launch*", "release*", "ship*", "target date", "go-live"],
    ),
    (
        Cues::ABOUT_CODENAME,
        &[
            "code(| )name*",
            "calling (the|this)",
            "(is|now) called",
            "internal label",
            "designated",
            "rename*",
        ],
    ),
    (
        Cues::ABOUT_TIME_ZONE,
        &[
            "(timezone|timezones|time zone|time zones|utc|gmt|pacific|eastern|central|clock|clocks)",
            "(timestamp|timestamps|times)",
        ],
    ),
    (
        Cues::ABOUT_ON_CALL,
        &["on(-| )call", "pager", "support (duty|escalation)", "escalation duty", "incident owner"],
    ),
    (Cues::ABOUT_BRANCH, &["(branch|rebase|rebased)", "checked out"]),
    (Cues::ABOUT_ANSWERS, &["(answer|answers|reply|replies|response|responses)"]),
    (Cues::ABOUT_PASSCODE, &["(code|codes|passcode|passcodes|password|passwords|token|tokens|key|keys)"]),
    (Cues::ABOUT_WEEKDAY, &["(weekly|standup|report day|meeting)"]),
    (Cues::ABOUT_EXAMPLES, &["(example|examples|snippet|snippets)"]),
    (Cues::ABOUT_NEXT_STEP, &["next (step|up|task)"]),
    (Cues::ABOUT_PHASE, &["phase"]),
];
