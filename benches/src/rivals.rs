//! What ours is compared with: the plain use of a well-known crate, written to do no more than ours needs.

use epitome_loop::{Block, Message, SUMMARY_ROOT, Section};

/// Counts a session of plain messages anew with `tiktoken-rs`, with the published framing of OpenAI chat.
#[must_use]
pub fn recount_chat(messages: &[Message]) -> u64 {
    let bpe = tiktoken_rs::o200k_base_singleton();
    let content = |message: &Message| -> usize {
        let texts = message.blocks().iter().filter_map(|block| match block {
            Block::Text { text } => Some(text),
            _ => None,
        });
        texts.map(|text| bpe.count_ordinary(text)).sum()
    };
    let tokens: usize = messages.iter().map(|message| 3 + 1 + content(message)).sum();
    tokens as u64 + 3
}

/// Reads a summary with `roxmltree` and looks whether it has the root and the five sections in order, texts
/// only. That is less than the strict grammar asks for.
#[must_use]
pub fn roxmltree_accepts(text: &str) -> bool {
    let Ok(document) = roxmltree::Document::parse(text) else { return false };
    let root = document.root_element();
    let names = root.children().map(|child| child.tag_name().name());
    root.tag_name().name() == SUMMARY_ROOT
        && names.eq(Section::ALL.iter().map(|section| section.as_str()))
        && root.children().all(|section| section.children().all(|child| child.is_text()))
}
