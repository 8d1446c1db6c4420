//! What stands around an answer.

use super::Repair;

/// Takes off what is around the answer: a byte-order mark, white space, reasoning, one fence.
pub(super) fn unwrap<'a>(text: &'a str, repairs: &mut Vec<Repair>) -> &'a str {
    let mut rest = text;
    if let Some(without) = rest.strip_prefix('\u{feff}') {
        repairs.push(Repair::ByteOrderMark);
        rest = without;
    }
    rest = trimmed(rest, repairs);
    for (open, close) in
        [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>")]
    {
        if let Some((_, answer)) = rest.strip_prefix(open).and_then(|inner| inner.split_once(close)) {
            repairs.push(Repair::Reasoning);
            rest = answer.trim();
        }
    }
    match fenced(rest) {
        Some(inner) => {
            repairs.push(Repair::CodeFence);
            inner.trim()
        }
        None => rest,
    }
}

fn trimmed<'a>(text: &'a str, repairs: &mut Vec<Repair>) -> &'a str {
    let inner = text.trim();
    if inner.len() != text.len() {
        repairs.push(Repair::OuterWhiteSpace);
    }
    inner
}

/// What stands in a fence that is around everything, or behind one line of introduction.
fn fenced(text: &str) -> Option<&str> {
    let fence = if text.starts_with("~~~") { "~~~" } else { "```" };
    let opened = match text.strip_prefix(fence) {
        Some(opened) => opened,
        None => {
            let (introduction, rest) = text.split_once('\n')?;
            let rest = rest.trim_start();
            let is_introduction = !introduction.contains('<') && !introduction.starts_with('#');
            rest.strip_prefix(fence).filter(|_| is_introduction)?
        }
    };
    // The rest of the line says what is in it.
    let (_, inner) = opened.split_once('\n')?;
    let inner = inner.trim_end().strip_suffix(fence)?;
    // Two fences are no fence around everything.
    (!inner.lines().any(|line| line.trim_start().starts_with(fence))).then_some(inner)
}
