//! Which provider a model belongs to, where the source does not say.

use epitome_loop::ModelKey;

/// The key of a model named as `model` or `provider/model`. A bare name is assigned by its family, else to
/// the provider whose format the source has.
pub(crate) fn model_key(name: &str, format_provider: &str) -> Option<ModelKey> {
    if name.trim().is_empty() {
        return None;
    }
    if let Some((provider, model)) = name.split_once('/')
        && !provider.is_empty()
        && !model.is_empty()
    {
        return Some(ModelKey::new(provider, model));
    }
    const FAMILIES: [(&str, &str); 7] = [
        ("claude", "anthropic"),
        ("gpt-", "openai"),
        ("chatgpt", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("gemini", "google"),
    ];
    let family = FAMILIES.iter().find(|(prefix, _)| name.starts_with(prefix));
    Some(ModelKey::new(family.map_or(format_provider, |(_, provider)| provider), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_guessed_by_family_only_where_not_named() {
        let provider = |name| model_key(name, "here").map(|key| key.provider.as_str().to_owned());
        assert_eq!(provider("claude-sonnet-4-5").as_deref(), Some("anthropic"));
        assert_eq!(provider("openrouter/claude-x").as_deref(), Some("openrouter"));
        assert_eq!(provider("qwen3").as_deref(), Some("here"));
        assert_eq!(provider(" "), None);
    }
}
