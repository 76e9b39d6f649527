//! `NAME@VERSION` and options: parsed, checked, resolved to a release.

use super::registry::{Choice, PROFILES, ProfileInfo, Role, Rule};
use super::release::Release;
use super::{EngineModel, Grain, Setup};
use crate::error::{Error, Result};
use crate::hierarchy::TierSpec;
use crate::policy::spec::{Args, Param, Spec, unknown};
use crate::trace::NO_LENGTH;

/// What decoded tokens do to the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outputs {
    /// They fill blocks nobody finds again: a lower bound of the hits.
    Private,
    /// They fill the blocks that the trace lists, and a request without any generates one token.
    Listed,
    /// Every request generates one token, which has no KV.
    None,
}

/// Options of every profile.
pub(super) const COMMON: &[Param] = &[
    Param { name: "block_size", default: "", doc: "tokens per engine block; the engine's own unless given" },
    Param {
        name: "outputs",
        default: "private",
        doc: "decoded blocks: private (nobody finds them again), listed (as the trace lists them) or none",
    },
];

/// An engine profile, resolved.
#[derive(Debug, Clone)]
pub struct Profile {
    info: &'static ProfileInfo,
    releases: Vec<Release>,
    options: Spec,
    common: Spec,
}

impl Profile {
    /// Parses `NAME@VERSION` (or `A@X+B@Y`; without `@VERSION` the newest known release) and its options.
    ///
    /// # Errors
    /// [`Error::Config`] for unknown names, releases and options, naming the known ones.
    pub fn parse(text: &str, options: &[(String, String)]) -> Result<Self> {
        let parts: Vec<(&str, Option<&str>)> = text
            .trim()
            .split('+')
            .map(|part| part.split_once('@').map_or((part, None), |(name, version)| (name, Some(version))))
            .collect();
        let name = parts.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("+");
        let info = PROFILES
            .iter()
            .find(|info| info.name == name)
            .ok_or_else(|| unknown("profile", &name, &PROFILES.iter().map(|p| p.name).collect::<Vec<_>>()))?;
        let releases = info
            .components
            .iter()
            .zip(&parts)
            .map(|(part, (name, version))| Release::resolve(name, *version, part.releases))
            .collect::<Result<_>>()?;
        let is_common = |name: &str| COMMON.iter().any(|option| option.name == name);
        let (common, own): (Vec<_>, Vec<_>) = options.iter().cloned().partition(|(key, _)| is_common(key));
        let spec = |args: Vec<(String, String)>| Spec {
            name: info.name.to_owned(),
            args: args.into_iter().map(|(key, value)| (Some(key), value)).collect(),
        };
        let profile = Self { info, releases, options: spec(own), common: spec(common) };
        Args::new(&profile.options, info.options)?;
        profile.outputs()?;
        profile.block_tokens()?;
        Ok(profile)
    }

    /// Its registry entry.
    #[must_use]
    pub fn info(&self) -> &'static ProfileInfo {
        self.info
    }

    /// The resolved releases, one per component.
    #[must_use]
    pub fn releases(&self) -> &[Release] {
        &self.releases
    }

    /// The resolved name: `vllm@0.33.0+lmcache@0.5.6`.
    #[must_use]
    pub fn name(&self) -> String {
        let parts = self.info.components.iter().zip(&self.releases);
        parts.map(|(part, release)| format!("{}@{release}", part.name)).collect::<Vec<_>>().join("+")
    }

    /// Every option it has: those of all profiles, then its own.
    #[must_use]
    pub fn options(&self) -> Vec<Param> {
        COMMON.iter().chain(self.info.options).copied().collect()
    }

    /// The rules of this release.
    #[must_use]
    pub fn rules(&self) -> Vec<Rule> {
        (self.info.rules)(&self.releases)
    }

    /// Tokens per engine block.
    ///
    /// # Errors
    /// [`Error::Config`] for a size out of range.
    pub fn block_tokens(&self) -> Result<u32> {
        let args = Args::new(&self.common, COMMON)?;
        if args.text("block_size").is_empty() {
            return Ok(self.info.block_tokens);
        }
        args.number("block_size", 1..=1_u32 << 20)
    }

    /// What decoded tokens do.
    ///
    /// # Errors
    /// [`Error::Config`] for an unknown word.
    pub fn outputs(&self) -> Result<Outputs> {
        let args = Args::new(&self.common, COMMON)?;
        match args.text("outputs") {
            "private" => Ok(Outputs::Private),
            "listed" => Ok(Outputs::Listed),
            "none" => Ok(Outputs::None),
            other => Err(args.bad("outputs", other, "private, listed or none")),
        }
    }

    /// The tiers with their policies settled: `lru`, which a tier has unless told, stands for the engine's own
    /// default where the engine's tier knows no `lru` (secondary tiers that never evict, for example).
    #[must_use]
    pub fn settled(&self, tiers: &[TierSpec]) -> Vec<TierSpec> {
        let settle = |tier: &TierSpec| {
            let role = self.info.roles.iter().find(|role| role.name == tier.name || role.name == "*");
            let first = role.and_then(|role| role.policies.first()).map(|choice| choice.name);
            let known = role.is_some_and(|role| role.policies.iter().any(|choice| choice.name == "lru"));
            match first {
                Some(first) if tier.policy == "lru" && !known => {
                    TierSpec { policy: first.to_owned(), ..tier.clone() }
                }
                _ => tier.clone(),
            }
        };
        tiers.iter().map(settle).collect()
    }

    /// Checks the tiers and builds the model for a trace in this profile's blocks.
    ///
    /// # Errors
    /// [`Error::Config`] for tiers, policies or filters the engine does not have.
    pub fn build(&self, tiers: &[TierSpec], grain: &Grain) -> Result<Box<dyn EngineModel>> {
        let trace = grain.trace();
        self.check_outputs(tiers, &trace.requests.output_tokens)?;
        self.build_for(tiers, trace.forest.blocks(), trace.block_tokens, trace.requests.arrival_us.is_some())
    }

    /// Decoded blocks can only take room on a GPU where their number is known.
    fn check_outputs(&self, tiers: &[TierSpec], output_tokens: &[u32]) -> Result<()> {
        let missing = output_tokens.iter().filter(|&&tokens| tokens == NO_LENGTH).count();
        if missing == 0 || self.outputs()? != Outputs::Private || tiers.iter().all(|tier| tier.name != "gpu")
        {
            return Ok(());
        }
        Err(Error::config(
            format!("{missing} of {} requests state no output length", output_tokens.len()),
            "decoded blocks take room on the GPU: name the column (--columns output_tokens=NAME), or leave them \
             out with the profile option outputs=none",
        ))
    }

    /// The model for `blocks` distinct blocks of `block_tokens` tokens.
    pub(super) fn build_for(
        &self,
        tiers: &[TierSpec],
        blocks: u32,
        block_tokens: u32,
        timed: bool,
    ) -> Result<Box<dyn EngineModel>> {
        self.check(tiers)?;
        let options = Args::new(&self.options, self.info.options)?;
        let releases = &self.releases;
        (self.info.build)(&Setup { releases, tiers, options: &options, blocks, block_tokens, timed })
    }

    fn check(&self, tiers: &[TierSpec]) -> Result<()> {
        let mut roles = self.info.roles;
        if tiers.is_empty() {
            return Err(Error::config("no tier is given", self.tiers_hint()));
        }
        for (k, tier) in tiers.iter().enumerate() {
            if tiers[..k].iter().any(|t| t.name == tier.name) {
                return Err(Error::config(
                    format!("two tiers are named {:?}", tier.name),
                    "give every tier a name of its own",
                ));
            }
            // A further name is one that no other role has; gpu is no name for anything but the GPU.
            let is_further = tier.name != "gpu" && self.info.roles.iter().all(|role| role.name != tier.name);
            let takes = |role: &Role| role.name == tier.name || (is_further && role.name == "*");
            let Some(at) = roles.iter().position(takes) else {
                return Err(Error::config(
                    format!("{} has no tier {:?} at this place", self.name(), tier.name),
                    self.tiers_hint(),
                ));
            };
            self.check_tier(tier, &roles[at])?;
            roles = if roles[at].name == "*" { &roles[at..] } else { &roles[at + 1..] };
        }
        Ok(())
    }

    fn check_tier(&self, tier: &TierSpec, role: &Role) -> Result<()> {
        let what = |kind: &str| format!("{kind} of tier {} under {}", tier.name, self.name());
        choose(&what("policy"), &tier.policy, role.policies)?;
        if Spec::parse(&tier.admission)?.name != "always" {
            choose(&what("admission"), &tier.admission, role.admissions)?;
        }
        if tier.chunk_blocks > 1 && !role.chunks {
            return Err(Error::config(
                format!("tier {} keeps single blocks under {}", tier.name, self.name()),
                "leave chunk_blocks out",
            ));
        }
        Ok(())
    }

    fn tiers_hint(&self) -> String {
        let known: Vec<&str> =
            self.info.roles.iter().map(|role| if role.name == "*" { "others" } else { role.name }).collect();
        format!("its tiers are, in this order: {}", known.join(", "))
    }
}

/// Checks that a spec names one of the choices and gives it parameters it has.
fn choose(what: &str, text: &str, choices: &'static [Choice]) -> Result<()> {
    let spec = Spec::parse(text)?;
    let Some(choice) = choices.iter().find(|choice| choice.name == spec.name) else {
        let names: Vec<&str> = choices.iter().map(|choice| choice.name).collect();
        return Err(if names.is_empty() {
            Error::config(format!("{what}: {text:?} is not possible"), "leave it out")
        } else {
            unknown(what, &spec.name, &names)
        });
    };
    Args::new(&spec, choice.parameters).map(|_| ())
}
