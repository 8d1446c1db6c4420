//! Where a model is served: https, or http on this machine; no credentials in the address.

use reqwest::Url;

/// A checked address, as it will be dialed.
#[derive(Clone)]
pub(crate) struct Endpoint {
    url: Url,
    local: bool,
}

impl Endpoint {
    /// Takes an address such as `https://api.openai.com/v1`; `None` when it may not be used.
    ///
    /// It is judged in the reading of the client that dials it, so that the two cannot differ.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        let host = url.host_str()?;
        let local = ["localhost", "127.0.0.1", "[::1]"].contains(&host);
        let secure = match url.scheme() {
            "https" => true,
            "http" => local,
            _ => false,
        };
        let bare = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        (secure && bare).then_some(Self { url, local })
    }

    /// Whether requests stay on this machine, as far as the address tells.
    pub(crate) fn is_local(&self) -> bool {
        self.local
    }

    /// Whether requests go over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The address of one of its services. The path begins with a slash.
    pub(crate) fn service(&self, path: &str) -> Option<Url> {
        let base = self.url.as_str().trim_end_matches('/');
        Url::parse(&format!("{base}{path}")).ok().filter(|url| url.origin() == self.url.origin())
    }

    /// The address of a service that stands beside the versioned ones: `/props` beside `/v1`.
    pub(crate) fn beside(&self, path: &str) -> Option<Url> {
        let base = self.as_str();
        let root = base.strip_suffix("/v1").unwrap_or(base);
        Url::parse(&format!("{root}{path}")).ok().filter(|url| url.origin() == self.url.origin())
    }

    /// The address in its one form.
    pub(crate) fn as_str(&self) -> &str {
        self.url.as_str().trim_end_matches('/')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_https_or_on_this_machine_and_bare() {
        for (good, local) in [
            ("https://api.openai.com/v1", false),
            ("https://api.openai.com", false),
            ("http://localhost:11434/v1/", true),
            ("http://127.0.0.1:8080", true),
            ("http://[::1]:1", true),
            ("https://localhost", true),
        ] {
            let endpoint = Endpoint::parse(good).unwrap();
            assert_eq!(endpoint.is_local(), local, "{good}");
            let url = endpoint.service("/models/a:b?alt=sse").unwrap();
            assert!(url.as_str().ends_with("/models/a:b?alt=sse") && !url.as_str().contains("//models"));
        }
        for bad in [
            "",
            "api.openai.com",
            "http://api.openai.com",
            "ftp://x",
            "https://user@x",
            "https://u:p@x",
            "https://x?key=1",
            "https://x#f",
            "http://127.0.0.1.evil.com",
            "http://localhost.evil.com",
            "http://0.0.0.0",
            "file:///etc",
        ] {
            assert!(Endpoint::parse(bad).is_none(), "{bad}");
        }
        let bare = Endpoint::parse("https://x").unwrap();
        assert!(bare.service("@evil.com/").is_none() && bare.beside("@evil.com/").is_none());
    }

    #[test]
    fn what_stands_beside_the_version_is_on_the_same_server() {
        for (base, beside) in [
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/props"),
            ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/props"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/props"),
            ("https://x.test/llm/v1", "https://x.test/llm/props"),
            ("https://x.test/v1beta", "https://x.test/v1beta/props"),
        ] {
            assert_eq!(Endpoint::parse(base).unwrap().beside("/props").unwrap().as_str(), beside);
        }
    }
}
