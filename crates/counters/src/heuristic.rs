//! An estimate of text size from pairs of bytes alone, without a tokenizer.

use async_trait::async_trait;
use epitome_loop::{
    ContextCount, ContextCounter, CountError, CountQuality, CounterCapability, Message, Request,
    TextEstimator, TokenCount,
};

use crate::breakdown::Breakdown;
use crate::content_class::ContentClass;
use crate::content_cost::Tariff;
use crate::error_band::{CountRange, ErrorBand};
use crate::share_tables;
use crate::text_size::{TextSize, estimate_text};

/// Sizes text and whole requests without a tokenizer, for models about which nothing is known.
///
/// It looks at each byte and the one before it, tells the class of the content from that, and sums up what a
/// byte takes on average in text of that class: linear, in one pass, without a vocabulary. The figures were
/// fitted to `o200k_base`, in the middle of the errors, neither high nor low; [`Self::error_band`] says how far
/// off it may be. Where an estimate guards a limit, take the upper end of [`Self::range`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeuristicEstimator;

impl HeuristicEstimator {
    /// Sizes a whole request.
    #[must_use]
    pub fn count_request(&self, request: &Request) -> ContextCount {
        ContextCount {
            model: request.model.clone(),
            input_tokens: self.range(request).tokens,
            quality: CountQuality::HeuristicEstimate,
        }
    }

    /// Sizes a whole request, with the range in which the true count of a model of unknown tokenizer lies.
    #[must_use]
    pub fn range(&self, request: &Request) -> CountRange {
        self.measure_parts(request).range
    }

    /// Sizes one message with the marks around it.
    #[must_use]
    pub fn count_message(&self, message: &Message) -> TokenCount {
        TokenCount(Tariff::UNKNOWN_BYTES.message(message))
    }

    /// Sizes a whole request, part by part.
    #[must_use]
    pub fn measure_parts(&self, request: &Request) -> Breakdown {
        let tariff = Tariff::UNKNOWN_BYTES;
        let content = |message: &Message| tariff.content(message.blocks());
        let costs: Vec<_> = request.messages.iter().map(content).collect();
        let tools = tariff.tools(&request.tools);
        Breakdown::of(request, &tariff, tools, &costs, CountQuality::HeuristicEstimate)
    }

    /// Where the counts of `o200k_base` lie around the estimate for nine texts in ten of a class.
    #[must_use]
    pub fn error_band(&self, class: ContentClass) -> ErrorBand {
        share_tables::error_band(class)
    }
}

impl TextEstimator for HeuristicEstimator {
    fn estimate(&self, text: &str) -> TokenCount {
        TokenCount(estimate_text(text))
    }
}

#[async_trait]
impl ContextCounter for HeuristicEstimator {
    async fn count(&self, request: &Request) -> Result<ContextCount, CountError> {
        Ok(self.count_request(request))
    }

    fn capability(&self) -> CounterCapability {
        CounterCapability::local("byte-pairs/1", CountQuality::HeuristicEstimate)
    }
}

impl Tariff {
    /// For a model about which nothing is known, without a tokenizer.
    const UNKNOWN_BYTES: Self = Self { text: TextSize::Bytes, ..Self::UNKNOWN };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::Encoding;

    /// Each kind of text that agents handle lies in the band of its class, or near it: these samples repeat
    /// themselves, as real text does not.
    #[test]
    fn is_near_the_encoding_for_every_kind_of_text() {
        let samples = [
            ("prose", "The committee agreed that the proposal should be revised before the next meeting. "),
            ("code", "    let total = items.iter().map(|item| item.price * item.count).sum::<u64>();\n"),
            ("minified", "function(e,t){return e.n=t.a(r(12)),!o&&(i=s.x||{})[0]}"),
            ("json", "{\"id\":4711,\"name\":\"billing\",\"tags\":[\"a\",\"b\"],\"ok\":true},\n"),
            (
                "diff",
                "+    let x = foo(bar)?;\n-    let x = foo(bar).unwrap();\n@@ -12,7 +12,9 @@ fn main() {\n",
            ),
            ("log", "2026-11-30T12:24:11.123Z ERROR [worker-3] connection to 10.0.12.7:5432 refused\n"),
            ("table", "| name | value | count |\n|------|-------|-------|\n| foo  | 12.5  | 3     |\n"),
            ("tree", "├── src\n│   ├── main.rs\n│   └── lib.rs\n└── Cargo.toml\n"),
            ("hex", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
            ("base64", "iVBORw0KGgoAAAANSUhEUgAAAZAAAAEtCAYAAADRbBB5AAAgAElEQVR4nOy9eZQdR33v+6"),
            ("camel case", "getUserAccountSettings(parseInputParameters, defaultRetryPolicy) "),
            ("German", "Die Größenänderung wurde überprüft, die Aufträge können zurückgestellt werden. "),
            ("Russian", "Программа завершилась с ошибкой, проверьте журнал и запустите её снова. "),
            ("Chinese", "我们决定保留这个接口，因为下游的服务依赖它。"),
            ("Japanese", "この関数は毎回新しいセッションを作成し、終了時にログを書き込みます。"),
            ("Korean", "이 함수는 매번 새로운 세션을 만들고 종료할 때 로그를 기록합니다. "),
        ];
        for (kind, sample) in samples {
            let text = sample.repeat(40);
            let (estimate, tokens) = (estimate_text(&text), Encoding::O200kBase.count(&text));
            let percent = estimate * 100 / tokens;
            assert!((75..=140).contains(&percent), "{kind}: {percent} %");
        }
    }

    #[test]
    fn runs_of_one_byte_are_cheap_and_nothing_is_free() {
        assert_eq!(estimate_text(""), 0);
        assert!(estimate_text(&" ".repeat(10_000)) < 500);
        for byte in 0..128_u8 {
            assert!(estimate_text(&char::from(byte).to_string()) >= 1, "{byte}");
        }
    }
}
