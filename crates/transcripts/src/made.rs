//! Sessions of messages that no file holds: those that a host has, and those that came behind what was read.

use std::sync::Arc;

use epitome_loop::{Message, ModelKey, RawJson, Role};

use crate::container::Container;
use crate::session::Origin;
use crate::write::Item;
use crate::{Format, Session, epitome_json};

impl Session {
    /// A session made of messages. [`crate::write`] encodes it anew in whatever format; its own one is Epitome JSON.
    #[must_use]
    pub fn of_messages(
        messages: impl Into<Arc<[Message]>>,
        tools: impl Into<Arc<[RawJson]>>,
        model: Option<ModelKey>,
    ) -> Self {
        let (messages, tools): (Arc<[Message]>, Arc<[RawJson]>) = (messages.into(), tools.into());
        let item = |message: &Message| Item { message: message.clone(), is_summary: false };
        let items: Vec<Item> = messages.iter().map(item).collect();
        // Ids of what is written are worked out from the source, so other messages must be another source.
        let source = epitome_json::encode_document(model.as_ref(), &tools, &items);
        Self {
            source: source.into(),
            format: Format::EpitomeJson,
            container: Arc::new(Container::Made),
            originals: Arc::from([]),
            origins: messages.iter().map(|_| Origin::OURS).collect(),
            leading_system: leading_system(&messages),
            messages,
            tools,
            model,
            derived_prefix: 0,
            before_summary: 0,
            reported_usage: None,
            title: None,
            first_timestamp: None,
            cwd: None,
            last_timestamp: None,
            context_window: None,
            notes: Arc::from([]),
            is_pristine: false,
        }
    }

    /// The session with further messages behind its own. What it was read from stays byte for byte as it is when it
    /// is written; they are encoded.
    #[must_use]
    pub fn with_further(&self, messages: &[Message]) -> Self {
        if messages.is_empty() {
            return self.clone();
        }
        let origins = self.origins.iter().copied().chain(messages.iter().map(|_| Origin::OURS));
        let messages: Arc<[Message]> = self.messages.iter().chain(messages).cloned().collect();
        Self {
            origins: origins.collect(),
            leading_system: leading_system(&messages),
            messages,
            is_pristine: false,
            ..self.clone()
        }
    }
}

fn leading_system(messages: &[Message]) -> usize {
    messages.iter().take_while(|message| message.role() == Role::System).count()
}
