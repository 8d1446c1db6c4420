//! The hustles of a rig's file, with what works for them here.

use epitome_loop::{
    HustleDefinition, InferenceCapability, InferenceTransport, Model, ModelSource, Sampling, TokenCount,
};
use epitome_models::{PROFILES, profile};
use epitome_rig::BoundLoop;

use super::args::FormKind;
use super::asked_model::{AskedModel, ModelWish};
use super::hustles::{AskedHustle, Summarizing, embedded_worker};
use super::watch::Watch;
use super::{SummarizerArgs, SummarizerFault, SummarizerKind};
use crate::failure::Failure;
use crate::model_endpoint::ModelEndpoint;

/// Those whom the loop's policy asks.
pub(crate) fn of_rig(bound: &BoundLoop, args: &SummarizerArgs) -> Result<Summarizing, Failure> {
    if let Some(option) = args.in_a_rig() {
        return Err(SummarizerFault::InARig { option }.into());
    }
    let Some(compaction) = bound.compaction() else {
        return Ok(Summarizing { hustles: Vec::new(), carries: true });
    };
    let definition = bound.definition();
    let way = definition.context().map(|context| context.inference());
    let definitions = std::iter::once(compaction.hustle).chain(compaction.fallback);
    let hustles = definitions.map(|hustle| asked(hustle, definition.model(), way, args));
    Ok(Summarizing {
        hustles: hustles.collect::<Result<_, Failure>>()?,
        carries: compaction.policy.carry_constraints(),
    })
}

fn asked(
    hustle: &HustleDefinition,
    model: &Model,
    way: Option<&InferenceCapability>,
    args: &SummarizerArgs,
) -> Result<AskedHustle, Failure> {
    let name = hustle.name().as_str();
    let named = |client: &str| {
        let known = profile(client.trim());
        known.ok_or_else(|| SummarizerFault::NoClient { hustle: name.to_owned() })
    };
    let (endpoint, wanted, limits, sampling, prompt) = match hustle.model() {
        ModelSource::Embedded => {
            return Ok(AskedHustle {
                name: name.into(),
                kind: SummarizerKind::Extractive,
                worker: embedded_worker(),
                watch: Watch::default(),
                model: None,
                settings: None,
            });
        }
        ModelSource::Named { client, model, prompt, .. } => {
            (ModelEndpoint::from(named(client)?), &model.model, None, Sampling::default(), prompt)
        }
        ModelSource::CurrentLoop { prompt } => {
            let endpoint =
                of_loop(model).ok_or_else(|| SummarizerFault::NoClient { hustle: name.to_owned() })?;
            let stated = model.limits.window.max(model.limits.max_input) > TokenCount::ZERO;
            (endpoint, &model.name, stated.then_some(model.limits), model.sampling.clone(), prompt)
        }
    };
    let watch = Watch::default();
    let wish = ModelWish {
        endpoint: &endpoint,
        model: Some(wanted),
        limits,
        prompt: prompt.clone(),
        // A summary has a budget of its own, and must not end where an answer of the loop would.
        sampling: Sampling { max_tokens: None, stop: None, ..sampling },
        reasoning: args.summarizer_reasoning.map(TokenCount),
        timeout: hustle.timeout(),
    };
    let found = AskedModel::find(&wish, args, &watch)?;
    if way.is_some_and(|way| weakens(way.transport, found.is_local)) {
        return Err(SummarizerFault::Weaker { hustle: name.to_owned() }.into());
    }
    Ok(AskedHustle {
        name: name.into(),
        kind: SummarizerKind::Model,
        worker: found.worker(&wish, args.summarizer_form.unwrap_or(FormKind::Auto))?,
        watch,
        model: Some(found),
        settings: None,
    })
}

/// Whether a conversation would take a less protected way to be summarized than the loop's own requests take, by the
/// rule that counters obey (`compatible_counter`): what stays on this machine weakens nothing, plain TLS is the
/// equal of plain TLS, and nothing that leaves the machine is the equal of a way that does not, or of an attested one.
fn weakens(way: InferenceTransport, stays_here: bool) -> bool {
    !stays_here && way != InferenceTransport::Tls
}

/// The server of a loop's own model: that of its provider with its dialect, at its address.
fn of_loop(model: &Model) -> Option<ModelEndpoint> {
    let format = model.api_format.trim();
    let of_provider = || PROFILES.iter().filter(|known| known.provider == model.provider.trim());
    let found = of_provider().find(|known| known.name == format).or_else(|| of_provider().next())?;
    Some(ModelEndpoint::at(found, &model.base_url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_way_is_weakened() {
        use InferenceTransport::{AttestedTls, EndToEndEncrypted, Local, Tls};
        for way in [Local, Tls, AttestedTls, EndToEndEncrypted] {
            assert!(!weakens(way, true));
            assert_eq!(weakens(way, false), way != Tls);
        }
    }

    #[test]
    fn a_loops_model_is_at_its_provider_or_at_its_address() {
        let model = |provider: &str, format: &str, base_url: &str| Model {
            provider: provider.into(),
            api_format: format.into(),
            base_url: base_url.into(),
            name: "m".into(),
            ..Model::default()
        };
        let found =
            |model: &Model| of_loop(model).map(|found| (found.name().to_owned(), found.address().to_owned()));
        let openai = "https://api.openai.com/v1".to_owned();
        assert_eq!(found(&model("openai", "", "")), Some(("openai".into(), openai.clone())));
        assert_eq!(found(&model("openai", "openai-chat", "")), Some(("openai-chat".into(), openai)));
        let there = "http://127.0.0.1:9/v1";
        assert_eq!(found(&model("ollama", "openai", there)), Some(("ollama".into(), there.into())));
        assert_eq!(found(&model("nobody", "openai", there)), None);
    }
}
