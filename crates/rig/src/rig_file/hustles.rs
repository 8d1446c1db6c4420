//! Hustles and lanes of a rig file.

use epitome_loop::{
    ByteLimits, HustleLimitSettings, HustleSettings, LaneLimits, ModelKey, ModelSource, OutputSchema,
    RawJson, SharedText, SystemPrompt,
};

use super::Table;
use crate::rig_wire::{
    HustleLimitsWire, HustleWire, LaneWire, PromptWire, SchemaWire, SourceWire, SourceWord,
};
use crate::{FileError, FileProblem};

pub(super) fn limits(wire: HustleLimitsWire) -> HustleLimitSettings {
    let HustleLimitsWire { blocking, background, audit_timeout, finalization_timeout, worker_drain_timeout } =
        wire;
    let lane = |LaneWire { concurrent, queued }| LaneLimits { concurrent, queued };
    HustleLimitSettings {
        blocking: lane(blocking),
        background: lane(background),
        audit_timeout: audit_timeout.0,
        finalization_timeout: finalization_timeout.0,
        worker_drain_timeout: worker_drain_timeout.0,
    }
}

pub(super) fn settings(
    wire: HustleWire,
    table: &Table<'_>,
    prompt_file: &mut dyn FnMut(&str) -> Option<SharedText>,
) -> Result<HustleSettings, FileError> {
    let HustleWire {
        name,
        participation,
        timeout,
        input_bytes,
        output_bytes,
        model,
        prompt,
        policy_revision,
        output_schema,
        retry,
        identity,
    } = wire;
    let prompt = prompt.map(|prompt| read_prompt(prompt, table, prompt_file)).transpose()?;
    Ok(HustleSettings {
        name: name.into(),
        participation: participation.into(),
        timeout: timeout.0,
        limits: ByteLimits { input: input_bytes, output: output_bytes },
        model: read_source(model, prompt, table)?,
        policy_revision: policy_revision.into(),
        output_schema: output_schema.map(|schema| read_schema(schema, table)).transpose()?,
        retry: retry.into(),
        identity: identity.into(),
    })
}

fn read_prompt(
    wire: PromptWire,
    table: &Table<'_>,
    prompt_file: &mut dyn FnMut(&str) -> Option<SharedText>,
) -> Result<SystemPrompt, FileError> {
    let PromptWire { text, file, revision } = wire;
    let text = match (text, file) {
        (Some(text), None) => text.into(),
        (None, Some(file)) => {
            prompt_file(&file).ok_or_else(|| table.fault(&["prompt", "file"], FileProblem::PromptFile))?
        }
        _ => return Err(table.expected(&["prompt"], "either text or file")),
    };
    Ok(SystemPrompt { text, revision: revision.into() })
}

fn read_source(
    wire: SourceWire,
    prompt: Option<SystemPrompt>,
    table: &Table<'_>,
) -> Result<ModelSource, FileError> {
    let SourceWire { source, client, provider, name, revision } = wire;
    if source == SourceWord::Named {
        let needed = |value, key| table.needed(value, &["model"], key).map(SharedText::from);
        return Ok(ModelSource::Named {
            client: needed(client, "client")?,
            model: ModelKey { provider: needed(provider, "provider")?, model: needed(name, "name")? },
            revision: needed(revision, "revision")?,
            prompt: table.needed(prompt, &[], "prompt")?,
        });
    }
    for (key, given) in [
        ("client", client.is_some()),
        ("provider", provider.is_some()),
        ("name", name.is_some()),
        ("revision", revision.is_some()),
    ] {
        if given {
            return Err(table.expected(&["model", key], "this key only beside the source \"named\""));
        }
    }
    match (source, prompt) {
        (SourceWord::Embedded, Some(_)) => {
            Err(table.expected(&["prompt"], "no prompt: an embedded hustle has none"))
        }
        (SourceWord::Embedded, None) => Ok(ModelSource::Embedded),
        (_, prompt) => Ok(ModelSource::CurrentLoop { prompt: table.needed(prompt, &[], "prompt")? }),
    }
}

fn read_schema(wire: SchemaWire, table: &Table<'_>) -> Result<OutputSchema, FileError> {
    let SchemaWire { name, description, schema, strict, revision } = wire;
    let schema = RawJson::parse(schema)
        .map_err(|_| table.expected(&["output_schema", "schema"], "a JSON schema, as text in quotes"))?;
    Ok(OutputSchema {
        name: name.into(),
        description: description.into(),
        schema,
        strict,
        revision: revision.into(),
    })
}
