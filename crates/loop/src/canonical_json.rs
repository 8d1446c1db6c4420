//! The canonical JSON of the values that make up an identity. It is hashed and never read back.
//!
//! The encoder is written by hand: a derived one would change identities silently with every new field. The
//! form is the reference implementation's: keys in declaration order and capitalized, escapes as in wire v1,
//! byte arrays as lists of numbers, absent optional parts as `null`.

use crate::json_text::JsonSink;
use crate::{
    ContextBasis, ContextLimits, CounterCapability, InferenceCapability, Model, ModelCaps, Sampling,
    SecurityIdentity, TokenCount,
};

/// A number that JSON cannot hold: not a number, or infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotFinite;

/// Writes a model.
pub(crate) fn write_model(out: &mut impl JsonSink, model: &Model) -> Result<(), NotFinite> {
    let Model { provider, api_format, base_url, name, origin, caps, limits, sampling } = model;
    out.plain("{\"Provider\":");
    out.string(provider);
    out.plain(",\"APIFormat\":");
    out.string(api_format);
    out.plain(",\"BaseURL\":");
    out.string(base_url);
    out.plain(",\"Name\":");
    out.string(name);
    out.plain(",\"Origin\":");
    out.number(u64::from(*origin));
    out.plain(",\"Caps\":");
    write_caps(out, caps);
    let ContextLimits { window, max_input, max_output } = *limits;
    out.plain(",\"Limits\":{\"WindowTokens\":");
    out.number(window.get());
    out.plain(",\"MaxInputTokens\":");
    out.number(max_input.get());
    out.plain(",\"MaxOutputTokens\":");
    out.number(max_output.get());
    out.plain("},\"Sampling\":");
    write_sampling(out, sampling)?;
    out.plain("}");
    Ok(())
}

fn write_caps(out: &mut impl JsonSink, caps: &ModelCaps) {
    let ModelCaps {
        accepts_images,
        tools,
        thinking,
        structured_output,
        structured_output_with_tools,
        thinking_dialect,
        prompt_caching,
    } = caps;
    out.plain("{\"AcceptsImages\":");
    write_flag(out, *accepts_images);
    out.plain(",\"Tools\":");
    write_flag(out, *tools);
    out.plain(",\"Thinking\":");
    write_flag(out, *thinking);
    out.plain(",\"StructuredOutput\":");
    write_flag(out, *structured_output);
    out.plain(",\"StructuredOutputWithTools\":");
    write_flag(out, *structured_output_with_tools);
    out.plain(",\"ThinkingDialect\":");
    out.string(thinking_dialect);
    out.plain(",\"PromptCaching\":");
    write_flag(out, *prompt_caching);
    out.plain("}");
}

/// Writes how a model is sampled.
pub(crate) fn write_sampling(out: &mut impl JsonSink, sampling: &Sampling) -> Result<(), NotFinite> {
    let Sampling { temperature, top_p, max_tokens, stop, effort } = sampling;
    out.plain("{\"Temperature\":");
    write_float(out, *temperature)?;
    out.plain(",\"TopP\":");
    write_float(out, *top_p)?;
    out.plain(",\"MaxTokens\":");
    write_optional(out, max_tokens.map(TokenCount::get));
    out.plain(",\"Stop\":");
    match stop {
        None => out.plain("null"),
        Some(texts) => {
            out.plain("[");
            for (at, text) in texts.iter().enumerate() {
                out.plain(if at > 0 { "," } else { "" });
                out.string(text);
            }
            out.plain("]");
        }
    }
    out.plain(",\"Effort\":");
    out.string(effort);
    out.plain("}");
    Ok(())
}

/// Writes a basis.
pub(crate) fn write_basis(out: &mut impl JsonSink, basis: &ContextBasis) {
    let ContextBasis { revision, through_event_id } = basis;
    out.plain("{\"revision\":");
    out.number(revision.0);
    out.plain(",\"through_event_id\":");
    out.string(&through_event_id.to_string());
    out.plain("}");
}

/// Writes a counter's capability.
pub(crate) fn write_counter(out: &mut impl JsonSink, counter: &CounterCapability) {
    let CounterCapability { provider, transport, security_identity, retention, tokenizer_rev, quality } =
        counter;
    write_path(out, provider, transport.number(), security_identity, retention.number());
    out.plain(",\"TokenizerRev\":");
    out.string(tokenizer_rev);
    out.plain(",\"Quality\":");
    out.number(u64::from(quality.number()));
    out.plain("}");
}

/// Writes the capability of a request's path.
pub(crate) fn write_inference(out: &mut impl JsonSink, inference: &InferenceCapability) {
    let InferenceCapability { provider, transport, security_identity, retention } = inference;
    let retention = retention.map_or(0, |retention| retention.number());
    write_path(out, provider, transport.number(), security_identity, retention);
    out.plain("}");
}

/// What both capabilities begin with; the object stays open.
fn write_path(
    out: &mut impl JsonSink,
    provider: &str,
    transport: u8,
    identity: &SecurityIdentity,
    retention: u8,
) {
    out.plain("{\"Provider\":");
    out.string(provider);
    out.plain(",\"Transport\":");
    out.number(u64::from(transport));
    out.plain(",\"SecurityIdentity\":[");
    for (at, byte) in identity.as_bytes().iter().enumerate() {
        out.plain(if at > 0 { "," } else { "" });
        out.number(u64::from(*byte));
    }
    out.plain("],\"Retention\":");
    out.number(u64::from(retention));
}

/// Writes `true` or `false`.
pub(crate) fn write_flag(out: &mut impl JsonSink, flag: bool) {
    out.plain(if flag { "true" } else { "false" });
}

/// Writes a number or `null`.
pub(crate) fn write_optional(out: &mut impl JsonSink, number: Option<u64>) {
    match number {
        Some(number) => out.number(number),
        None => out.plain("null"),
    }
}

/// Writes the shortest digits that give the same number back: plain from 1e-6 up to below 1e21, else with an
/// exponent that carries its sign.
fn write_float(out: &mut impl JsonSink, number: Option<f64>) -> Result<(), NotFinite> {
    let Some(number) = number else {
        out.plain("null");
        return Ok(());
    };
    if !number.is_finite() {
        return Err(NotFinite);
    }
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        out.plain(&number.to_string());
    } else {
        let text = format!("{number:e}");
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                out.plain(digits);
                out.plain("e+");
                out.plain(exponent);
            }
            _ => out.plain(&text),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_text::JsonBytes;

    fn float(number: f64) -> Result<String, NotFinite> {
        let mut out = JsonBytes::default();
        write_float(&mut out, Some(number))?;
        Ok(String::from_utf8(out.into_bytes()).unwrap())
    }

    #[test]
    fn floats_have_one_spelling() {
        for (number, spelled) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (0.7, "0.7"),
            (100.0, "100"),
            (1e-6, "0.000001"),
            (9.999_999e-7, "9.999999e-7"),
            (5e-324, "5e-324"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (1e21, "1e+21"),
            (-2.5e22, "-2.5e+22"),
            (f64::MAX, "1.7976931348623157e+308"),
        ] {
            assert_eq!(float(number), Ok(spelled.to_owned()), "{number:e}");
        }
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(float(number), Err(NotFinite));
        }
    }
}
