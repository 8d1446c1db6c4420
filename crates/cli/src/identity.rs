//! Which context and which request a session stands for.

use epitome_loop::{
    Block, ContextBasis, ContextCounter as _, ContextRevision, EventId, FingerprintError,
    InferenceCapability, Model, RequestFingerprint, RequestFingerprintInput, runtime_context_revision,
    system_revision, tool_policy_revision,
};
use epitome_transcripts::Session;
use sha2::{Digest as _, Sha256};

use crate::target::Target;

/// The basis of an imported session. What is imported is one event; its identity is the hash of its bytes.
pub(crate) fn basis_of(source: &[u8]) -> ContextBasis {
    let digest: [u8; 32] = Sha256::digest(source).into();
    let event = digest.first_chunk::<16>().copied().unwrap_or_default();
    ContextBasis { revision: ContextRevision(1), through_event_id: EventId::from_bytes(event) }
}

/// The fingerprint of the request that the session would be sent as.
///
/// Nothing is sent from here and the summarizer asks no model, so the path is that of work on this machine, and
/// the host adds nothing at the end of a request.
pub(crate) fn fingerprint_of(
    session: &Session,
    target: &Target,
    basis: ContextBasis,
) -> Result<RequestFingerprint, FingerprintError> {
    let input = RequestFingerprintInput {
        system_revision: system_revision(&system_prompt(session)),
        tool_policy_revision: tool_policy_revision(session.tools(), None)?,
        model: Model {
            provider: target.model.provider.clone(),
            name: target.model.model.clone(),
            limits: target.limits,
            ..Model::default()
        },
        basis,
        runtime_context_revision: runtime_context_revision(None),
        counter_capability: target.counter.capability(),
        inference_capability: InferenceCapability::local(),
    };
    input.fingerprint()
}

/// The text of the leading system messages; a blank line stands between two texts.
fn system_prompt(session: &Session) -> String {
    let messages = session.messages().iter().take(session.leading_system());
    let texts: Vec<&str> = messages.flat_map(|message| message.blocks().iter()).filter_map(text_of).collect();
    texts.join("\n\n")
}

fn text_of(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text } => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::SessionArgs;
    use epitome_transcripts::ReadOptions;

    fn print(session: &str, model: &str, window: u64) -> RequestFingerprint {
        let session =
            epitome_transcripts::read(session.as_bytes(), &ReadOptions::default(), &mut |_| {}).unwrap();
        let args =
            SessionArgs { model: Some(model.to_owned()), window: Some(window), ..SessionArgs::default() };
        let target = Target::of(&args, &session).unwrap();
        fingerprint_of(&session, &target, basis_of(b"the same event")).unwrap()
    }

    #[test]
    fn system_prompt_tools_and_model_are_told_apart() {
        let session = |system: &str, tool: &str| {
            let messages =
                format!(r#"[{{"role":"system","content":"{system}"}},{{"role":"user","content":"x"}}]"#);
            format!(
                r#"{{"messages":{messages},"tools":[{{"type":"function","function":{{"name":"{tool}"}}}}]}}"#
            )
        };
        let base = print(&session("a", "read"), "gpt-4o", 1_000);
        assert_eq!(base, print(&session("a", "read"), "gpt-4o", 1_000));
        for other in [
            print(&session("b", "read"), "gpt-4o", 1_000),
            print(&session("a", "write"), "gpt-4o", 1_000),
            print(&session("a", "read"), "gpt-4.1", 1_000),
            print(&session("a", "read"), "gpt-4o", 2_000),
        ] {
            assert_ne!(other, base);
        }
    }

    #[test]
    fn the_event_is_the_hash_of_the_bytes() {
        assert_ne!(basis_of(b"a"), basis_of(b"b"));
        assert!(basis_of(b"").is_complete());
    }
}
