//! What the readers of all providers make, and what holds for every answer.

use epitome_loop::{Block, FinishReason, ModelAnswer, ModelCallErrorKind, SharedText, TokenCount, Usage};

use crate::same_model::is_same_model;

/// The text of a refusal for which the provider gives no words.
pub const WORDLESS_REFUSAL: &str = "[refused without words]";

/// An answer while it is read.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) blocks: Vec<Block>,
    /// Why it ended, where the provider says so in words that are known.
    pub(crate) finish: Option<FinishReason>,
    pub(crate) usage: Option<Usage>,
    /// The model that answered; empty names are none.
    pub(crate) model: Option<String>,
}

impl Draft {
    /// Adds text; nothing for an empty one.
    pub(crate) fn push_text(&mut self, text: String) {
        if !text.is_empty() {
            self.blocks.push(Block::Text { text: text.into() });
        }
    }

    /// Adds a refusal; nothing for an empty one.
    pub(crate) fn push_refusal(&mut self, text: String) {
        if !text.is_empty() {
            self.blocks.push(Block::Refusal { text: text.into() });
        }
    }

    /// The answer, made to agree with itself.
    ///
    /// Who refuses is never taken for one who has nothing to say: a refusal in the blocks is one whatever the
    /// provider calls the end, and a refusal without words gets a block of its own. An answer that calls tools
    /// does so whatever the end is called, unless it was cut.
    ///
    /// # Errors
    /// [`ModelCallErrorKind::OtherModel`] when another model answered than the asked one; `None` for `asked`
    /// accepts any.
    pub(crate) fn finish(self, asked: Option<&str>) -> Result<ModelAnswer, ModelCallErrorKind> {
        let Self { mut blocks, finish, usage, model } = self;
        let model = model.filter(|name| !name.trim().is_empty());
        if let (Some(asked), Some(answered)) = (asked, &model)
            && !is_same_model(asked, answered)
        {
            return Err(ModelCallErrorKind::OtherModel);
        }
        let refuses = blocks.iter().any(|block| matches!(block, Block::Refusal { .. }));
        let calls = blocks.iter().any(|block| matches!(block, Block::ToolUse(_)));
        let finish = match finish.unwrap_or(FinishReason::Unknown) {
            _ if refuses => FinishReason::Refused,
            FinishReason::Stop | FinishReason::Unknown if calls => FinishReason::ToolCalls,
            finish => finish,
        };
        if finish == FinishReason::Refused && !refuses {
            blocks.push(Block::Refusal { text: WORDLESS_REFUSAL.into() });
        }
        Ok(ModelAnswer { blocks: blocks.into(), finish, usage, model: model.map(SharedText::from) })
    }
}

/// Usage of providers whose input includes what came from their cache and went there.
pub(crate) fn usage_with_cache_inside(
    input: u64,
    cache_read: u64,
    cache_creation: u64,
    output: u64,
    reasoning: u64,
) -> Usage {
    Usage {
        input: TokenCount(input.saturating_sub(cache_read).saturating_sub(cache_creation)),
        output: TokenCount(output),
        cache_read: TokenCount(cache_read),
        cache_creation: TokenCount(cache_creation),
        reasoning: TokenCount(reasoning),
    }
}

#[cfg(test)]
mod tests {
    use epitome_loop::ToolUse;

    use super::*;

    fn finished(blocks: Vec<Block>, finish: Option<FinishReason>) -> ModelAnswer {
        Draft { blocks, finish, ..Draft::default() }.finish(Some("m")).unwrap()
    }

    #[test]
    fn a_refusal_is_one_whatever_the_end_is_called() {
        let refusal = || Block::Refusal { text: "no".into() };
        let answer = finished(vec![Block::text("a"), refusal()], Some(FinishReason::Stop));
        assert_eq!(answer.finish, FinishReason::Refused);
        let answer = finished(Vec::new(), Some(FinishReason::Refused));
        assert_eq!(*answer.blocks, [Block::Refusal { text: WORDLESS_REFUSAL.into() }]);
    }

    #[test]
    fn calls_are_calls_unless_cut() {
        let call = || vec![Block::ToolUse(ToolUse::new("i", "n", None, None))];
        assert_eq!(finished(call(), Some(FinishReason::Stop)).finish, FinishReason::ToolCalls);
        assert_eq!(finished(call(), None).finish, FinishReason::ToolCalls);
        assert_eq!(finished(call(), Some(FinishReason::Length)).finish, FinishReason::Length);
        assert_eq!(finished(Vec::new(), None).finish, FinishReason::Unknown);
    }

    #[test]
    fn the_answering_model_is_checked_where_it_is_named() {
        let answered = |model: Option<&str>, asked| {
            Draft { model: model.map(str::to_owned), ..Draft::default() }.finish(asked).map(|_| ())
        };
        assert_eq!(answered(Some("m-2024-01-02"), Some("m")), Ok(()));
        assert_eq!(answered(Some("n"), Some("m")), Err(ModelCallErrorKind::OtherModel));
        assert_eq!(answered(Some("n"), None), Ok(()));
        assert_eq!(answered(Some(" "), Some("m")), Ok(()));
        assert_eq!(answered(None, Some("m")), Ok(()));
    }

    #[test]
    fn cached_input_is_taken_out_and_never_goes_below_zero() {
        let usage = usage_with_cache_inside(100, 60, 10, 5, 3);
        assert_eq!((usage.input, usage.context_tokens()), (TokenCount(30), Ok(TokenCount(100))));
        assert_eq!(usage_with_cache_inside(1, 2, 0, 0, 0).input, TokenCount(0));
    }
}
