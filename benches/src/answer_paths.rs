//! What a model answers, and what is taken out of what it is sent, in texts that are made to cost: opened and never closed,
//! or one line after another that might go on. Their rival is a quarter of them, so a reader that looks at everything again
//! and again shows as sixteen times.

use std::hint::black_box;

use epitome_models::redact;
use epitome_summarizers::normalize_answer;
use epitome_summarizers::structured::read_summary;

use crate::path::{HotPath, Measured, Target, Unit};
use crate::stopwatch::solo;

const BYTES: usize = 256 << 10;
const ROUNDS: usize = 5;

/// Linear with something to spare for caches.
const LINEAR: Target = Target::AtMost(5.5, "a quarter of them");

/// What answers are made of, over and over.
const ANSWERS: &[&str] = &[
    "a ",
    "a\n\n",
    "- a\n",
    "use a not b\n",
    "1. ",
    "# a\n",
    "```\n",
    "<think>",
    "<goal>",
    "<item></item>",
    "<",
    "&",
    "&#",
    "&amp;",
    "<![CDATA[",
    "]]>",
    "<conversation_summary>",
    "{\"",
    "[{",
    "\\",
    "\u{200b}",
];

/// What secrets begin with.
const SECRETS: &[&str] = &[
    "a",
    "sk-",
    "eyJa.",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----\n",
    "http://a:",
    "http://a:b@",
    "@",
    "password: \"",
    "API_KEY=",
    "Authorization: Bearer ",
    "\\n",
    "\"",
    "0123456789abcdef",
];

pub(crate) const PATHS: &[HotPath] = &[
    HotPath {
        group: "answers",
        name: "hostile answers, 4x the bytes",
        target: LINEAR,
        reason: None,
        measure: || growth(ANSWERS, read),
    },
    HotPath {
        group: "answers",
        name: "hostile text to redact, 4x the bytes",
        target: LINEAR,
        reason: None,
        measure: || growth(SECRETS, |text| drop(black_box(redact(text)))),
    },
];

/// Reads a text in every form, and as what stands inside of each.
fn read(text: &str) {
    let (head, tail) = ("<constraints/><decisions/>", "<open_items/></conversation_summary>");
    let xml = format!("<conversation_summary><goal>{text}</goal>{head}<state>{text}</state>{tail}");
    let markdown = format!("# Goal\n{text}\n# State\n{text}");
    for answer in [text, &xml, &markdown] {
        let _ = black_box(normalize_answer(answer));
    }
    for answer in [text, &format!("### Key facts\n{text}")] {
        let _ = black_box(read_summary(answer));
    }
}

fn growth(units: &[&str], work: fn(&str)) -> Measured {
    let time = |bytes: usize| {
        let texts: Vec<String> = units.iter().map(|unit| unit.repeat(bytes / unit.len().max(1))).collect();
        solo(ROUNDS, || texts.iter().for_each(|text| work(text))).as_secs_f64()
    };
    let (quarter, whole) = (time(BYTES / 4), time(BYTES));
    Measured { ours: whole, rival: quarter, unit: Unit::Seconds, bytes: 0, agreed: true }
}
