//! Faults of ours in the vectors' spelling.

use epitome_loop::{
    CapabilityError, ContextLimitsError, ContextLimitsField, HustleNameError, ModelError, ModelKeyError,
    ModelKeyField,
};
use serde_json::{Value, json};

pub(super) fn capability_cause(fault: CapabilityError) -> Value {
    json!({
        "type": "capability",
        "capability": fault.capability.as_str(),
        "field": fault.field.as_str(),
        "reason": fault.reason.as_str(),
    })
}

pub(super) fn model_cause(fault: ModelError) -> Value {
    match fault {
        ModelError::Limits(fault) => limits_cause(fault),
        ModelError::Key(fault) => key_cause(fault),
        ModelError::Name => json!({"type": "model", "field": "Name"}),
        ModelError::BaseUrl => json!({"type": "model", "field": "BaseURL"}),
        ModelError::ThinkingDialect => json!({"type": "model", "field": "Caps.ThinkingDialect"}),
        ModelError::StructuredOutputWithTools => {
            json!({"type": "model", "field": "Caps.StructuredOutputWithTools"})
        }
        _ => json!({"type": "model"}),
    }
}

pub(super) fn key_cause(fault: ModelKeyError) -> Value {
    let field = match fault.field {
        ModelKeyField::Provider => "Provider",
        ModelKeyField::Model => "Model",
    };
    json!({"type": "model_key", "field": field})
}

pub(super) fn limits_cause(fault: ContextLimitsError) -> Value {
    let field = match fault.field {
        ContextLimitsField::MaxInput => "MaxInputTokens",
        ContextLimitsField::MaxOutput => "MaxOutputTokens",
    };
    json!({"type": "context_limits", "field": field})
}

pub(super) fn name_fault(error: HustleNameError) -> &'static str {
    match error {
        HustleNameError::Missing => "missing_name",
        HustleNameError::Reserved => "reserved_name",
        _ => "unknown",
    }
}
