//! What is shortened for a model was looked through before: a secret that is cut in two is none any more to who looks for
//! secrets, and its halves would be sent.

use std::sync::{Arc, Mutex};

use epitome_loop::{
    Block, ContextLimits, Message, ModelAnswer, ModelCall, ModelClient, Sampling, SummaryRequest,
    SummarySections, TokenCount,
};
use epitome_models::Redacting;
use epitome_summarizers::structured::{StructuredPass, StructuredSummarizer, StructuredSummaryConfig};
use epitome_summarizers::{MODEL_PROMPT, ModelSummarizer, ModelSummarizerSettings, SummaryForm};

const KEY: &str = "sk-ant-api03-Zq7Rw2Lk9Xc4Vb8Nm3Jh6Gf1Ds5Pa0Zq7Rw2Lk9Xc4Vb8Nm3Jh6Gf1Ds5Pa0";

fn pem() -> String {
    let lines: String =
        (0..40).map(|line| format!("Zq7Rw2Lk9Xc4Vb8Nm3Jh6Gf1Ds5Pa0{line:02}AbCdEf\n")).collect();
    format!("-----BEGIN PRIVATE KEY-----\n{lines}-----END PRIVATE KEY-----\n")
}

/// Whether eight characters in a row of a secret's body stand in a text.
fn shows(text: &str) -> bool {
    ["Zq7Rw2Lk", "9Xc4Vb8N", "m3Jh6Gf1", "Ds5Pa0Zq", "AbCdEf"].iter().any(|part| text.contains(part))
}

fn texts(messages: &[Message]) -> String {
    let blocks = messages.iter().flat_map(|message| message.blocks().iter());
    blocks
        .filter_map(|block| if let Block::Text { text } = block { Some(text.as_str()) } else { None })
        .collect()
}

fn summarizer(window: u64) -> ModelSummarizer {
    let client = Redacting::new(|_: &ModelCall| Ok(ModelAnswer::text("")));
    let settings = ModelSummarizerSettings {
        model: "m".into(),
        limits: ContextLimits { window: TokenCount(window), ..ContextLimits::default() },
        prompt: MODEL_PROMPT.into(),
        form: SummaryForm::Xml,
        sampling: Sampling::default(),
        reasoning: TokenCount::ZERO,
        estimator: None,
    };
    ModelSummarizer::new(Arc::new(client), settings).unwrap()
}

fn request(transcript: Vec<Message>) -> SummaryRequest {
    SummaryRequest {
        transcript: transcript.into(),
        previous: Some(SummarySections {
            goal: vec!["Port it.".into()],
            state: vec![format!("{} {KEY} {}", "n".repeat(600), "n".repeat(600)).into()],
            ..SummarySections::default()
        }),
        instructions: None,
        max_tokens: TokenCount(400),
        max_bytes: None,
        estimator: Arc::new(|text: &str| TokenCount(text.len() as u64 / 4)),
        correction: None,
        carry_constraints: true,
    }
}

#[test]
fn no_part_of_a_secret_is_sent_wherever_a_text_is_cut() {
    let fill = |bytes: usize| "n ".repeat(bytes / 2);
    for window in [3_000, 9_000] {
        let summarizer = summarizer(window);
        for at in (0..4_200).step_by(31) {
            for secret in [KEY.to_owned(), pem()] {
                let long = format!("{}\n{secret}\n{}", fill(at), fill(4_200 - at));
                let asked = request(vec![
                    Message::user(format!("Look.\n{long}")),
                    Message::tool_result("1", long.clone(), false),
                    Message::assistant(long),
                ]);
                let sent = texts(&summarizer.question(&asked).unwrap().messages);
                assert!(!shows(&sent), "{window} {at}");
            }
        }
    }
}

#[tokio::test]
async fn the_structured_summarizer_cuts_no_secret_either() {
    let heard: Arc<Mutex<String>> = Arc::default();
    let client = {
        let heard = Arc::clone(&heard);
        Redacting::new(move |call: &ModelCall| {
            heard.lock().unwrap().push_str(&texts(&call.messages));
            Ok(ModelAnswer::text("### Key facts\n- a"))
        })
    };
    let client: Arc<dyn ModelClient> = Arc::new(client);
    for at in (0..240).step_by(3) {
        let result = format!("{} {KEY}", "n".repeat(at));
        let mut messages = vec![Message::user("Look."), Message::assistant("Yes."), Message::user("Go on.")];
        messages.insert(
            1,
            Message::User {
                blocks: [Block::ToolResult(epitome_loop::ToolResult {
                    tool_use_id: "1".into(),
                    content: vec![Block::text(result)].into(),
                    is_error: false,
                })]
                .into(),
            },
        );
        messages.extend((0..40).map(|turn| Message::user(format!("Step {turn}. {}", "word ".repeat(40)))));
        let config = StructuredSummaryConfig::for_model("m");
        let pass = StructuredPass::new(messages.into(), TokenCount(1_500));
        StructuredSummarizer::new(Arc::clone(&client), config).compact(&pass).await;
    }
    let heard = heard.lock().unwrap();
    assert!(heard.contains("Look.") && heard.contains("[redacted:"), "{heard:.300}");
    assert!(!shows(&heard));
}
