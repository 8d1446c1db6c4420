//! Error objects of providers, also in answers that call themselves a success.

use epitome_loop::ModelCallErrorKind;
use serde::Deserialize;
use serde_json::value::RawValue;

/// What an error object says about its kind. Its message is not read.
#[derive(Deserialize)]
struct ErrorObject<'a> {
    #[serde(default, borrow)]
    code: Option<&'a RawValue>,
    #[serde(default, borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(default, borrow)]
    status: Option<&'a RawValue>,
}

/// What a field `error` stands for: nothing for `null` and what cannot be an error, otherwise the status that the
/// object names, by number or by one of the providers' words; 200 where it names none that is known.
pub(crate) fn error_in_answer(error: Option<&RawValue>) -> Option<ModelCallErrorKind> {
    let error = error?.get();
    if matches!(error, "null" | "false" | "\"\"") {
        return None;
    }
    let Ok(ErrorObject { code, kind, status }) = serde_json::from_str(error) else {
        return Some(ModelCallErrorKind::Status(200));
    };
    let named = [code, kind, status].into_iter().flatten().find_map(|word| status_of(word.get()));
    Some(ModelCallErrorKind::Status(named.unwrap_or(200)))
}

/// A number of a failure, or the word for one, as it stands in JSON.
fn status_of(word: &str) -> Option<u16> {
    let word = word.trim_matches('"');
    if let Ok(number) = word.parse() {
        return (400..600).contains(&number).then_some(number);
    }
    let status = match word.to_ascii_lowercase().as_str() {
        "invalid_request_error" | "invalid_argument" | "failed_precondition" => 400,
        "authentication_error" | "unauthenticated" | "invalid_api_key" => 401,
        "billing_error" => 402,
        "permission_error" | "permission_denied" => 403,
        "not_found_error" | "not_found" | "model_not_found" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" | "resource_exhausted" => 429,
        "api_error" | "server_error" | "internal_server_error" | "internal" => 500,
        "unavailable" => 503,
        "timeout_error" | "deadline_exceeded" => 504,
        "overloaded_error" => 529,
        _ => return None,
    };
    Some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_named_by_its_number_or_word() {
        let told = |json: &str| {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            error_in_answer(Some(raw)).map(|kind| match kind {
                ModelCallErrorKind::Status(status) => status,
                other => panic!("{other}"),
            })
        };
        for (json, status) in [
            (r#"{"message":"m","type":"server_error","code":null}"#, 500),
            (r#"{"code":502,"message":"m"}"#, 502),
            (r#"{"code":"429"}"#, 429),
            (r#"{"type":"overloaded_error"}"#, 529),
            (r#"{"code":"rate_limit_exceeded","type":"tokens"}"#, 429),
            (r#"{"status":"RESOURCE_EXHAUSTED"}"#, 429),
            (r#"{"code":7,"type":"strange"}"#, 200),
            (r#"{"code":{"a":1}}"#, 200),
            (r#""model not loaded""#, 200),
            ("true", 200),
            ("[]", 200),
            ("{}", 200),
        ] {
            assert_eq!(told(json), Some(status), "{json}");
        }
        for none in ["null", "false", r#""""#] {
            assert_eq!(told(none), None, "{none}");
        }
        assert_eq!(error_in_answer(None), None);
    }
}
