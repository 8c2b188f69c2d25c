// What the server answers to gridfuse.measure: the JSON of `gridfuse measure --json`.

export interface Report {
  version: number;
  file: string;
  args: string[];
  machine: { gpu: string; compute_capability: string; driver: string; runtime: string };
  sites: { kernel: string; path: string; line: number }[];
  left_out: { path: string; line: number; reason: string }[];
  original: Outcome;
  deterministic: boolean | null;
  variants: Variant[];
}

export interface Variant {
  /** `threshold+aggregate-block` */
  rewrites: string;
  assumptions: string[];
  outcome: Outcome;
}

export type Outcome =
  | { outcome: "refused"; reasons: string[] }
  | { outcome: "not-built"; message: string; advice?: string | null }
  | { outcome: "failed"; message: string }
  | { outcome: "timed-out"; seconds: number }
  | Run;

export interface Run {
  outcome: "ran";
  times_ms: number[];
  median_ms: number;
  host_launches: number;
  device_launches: number | null;
  errors: { during: string; name: string; advice?: string | null }[];
  agreement: Agreement;
}

export type Agreement =
  | { agreement: "original" }
  | { agreement: "agrees"; compared: number; unstable: number }
  | {
      agreement: "differs";
      site: number;
      launch: number;
      argument: number;
      element: number | null;
      expected: string;
      found: string;
    }
  | { agreement: "prints-otherwise"; expected: string; found: string }
  | { agreement: "unknown"; reason: string };

/** A line of the table. */
export interface Row {
  name: string;
  /** Rewrites that can be applied; `undefined`: the original, or one that must not be. */
  applies: string | undefined;
  median: number | undefined;
  least: number | undefined;
  most: number | undefined;
  speedup: number | undefined;
  launches: number | undefined;
  result: string;
  bad: boolean;
  fastest: boolean;
  assumptions: string[];
}

/** The report as lines of a table, the original first, then what ran by time, then the rest; without what can't be applied. */
export function rows(report: Report): Row[] {
  const original = row("original", report.original, undefined, report, []);
  const tried = report.variants.filter((variant) => variant.outcome.outcome !== "refused");
  const variants = tried.map((variant) =>
    row(variant.rewrites, variant.outcome, original.median, report, variant.assumptions),
  );
  variants.sort((a, b) => (a.median ?? Number.POSITIVE_INFINITY) - (b.median ?? Number.POSITIVE_INFINITY));
  const fastest = variants.find((one) => one.median !== undefined && !one.bad && (one.speedup ?? 0) > 1);
  if (fastest !== undefined) {
    fastest.fastest = true;
  }
  return [original, ...variants];
}

/** What can't be applied, as sentences: several rewrites are mostly refused for one reason. */
export function refused(report: Report): string[] {
  const byReason = new Map<string, string[]>();
  for (const { rewrites, outcome } of report.variants) {
    if (outcome.outcome !== "refused") {
      continue;
    }
    const reason = outcome.reasons[0] ?? "";
    // `aggregate-block: it's too late`
    const own = rewrites.split("+").find((id) => reason.startsWith(`${id}: `));
    const text = own === undefined ? reason : reason.slice(own.length + 2);
    byReason.set(text, [...(byReason.get(text) ?? []), rewrites]);
  }
  return [...byReason].map(([reason, names]) =>
    reason === "" ? `${names.join(", ")} can't be applied.` : `${names.join(", ")} can't be applied: ${reason}.`,
  );
}

function row(
  name: string,
  outcome: Outcome,
  original: number | undefined,
  report: Report,
  assumptions: string[],
): Row {
  const plain = (result: string, bad: boolean): Row => ({
    name,
    applies: undefined,
    median: undefined,
    least: undefined,
    most: undefined,
    speedup: undefined,
    launches: undefined,
    result,
    bad,
    fastest: false,
    assumptions,
  });
  switch (outcome.outcome) {
    case "refused":
      return plain(`not applicable: ${outcome.reasons[0] ?? ""}`, false);
    case "not-built":
      return plain(`does not compile: ${outcome.advice ?? outcome.message.split("\n").slice(0, 4).join("\n")}`, true);
    case "failed":
      return plain(outcome.message, true);
    case "timed-out":
      return plain(`did not finish in ${outcome.seconds} s`, false);
    case "ran": {
      const differs = outcome.agreement.agreement === "differs" || outcome.agreement.agreement === "prints-otherwise";
      const isOriginal = outcome.agreement.agreement === "original";
      return {
        ...plain(agreement(outcome.agreement, report), differs),
        applies: isOriginal || differs ? undefined : name,
        median: outcome.median_ms,
        least: Math.min(...outcome.times_ms),
        most: Math.max(...outcome.times_ms),
        speedup: original !== undefined && outcome.median_ms > 0 ? original / outcome.median_ms : undefined,
        launches: outcome.device_launches ?? undefined,
      };
    }
  }
}

function agreement(found: Agreement, report: Report): string {
  switch (found.agreement) {
    case "original":
      return "";
    case "agrees": {
      if (found.compared === 0) {
        return "prints the same";
      }
      const unstable = found.unstable > 0 ? `, ${found.unstable} not comparable` : "";
      return `agrees (${found.compared} buffers${unstable})`;
    }
    case "differs": {
      const site = report.sites[found.site];
      const of = site === undefined ? "" : ` of ${site.kernel} (${site.path}:${site.line})`;
      const element = found.element === null ? "" : `[${found.element}]`;
      return (
        `DIFFERS: after launch ${found.launch + 1}${of}, argument ${found.argument + 1}${element} ` +
        `is ${found.found} instead of ${found.expected}`
      );
    }
    case "prints-otherwise":
      return `DIFFERS: prints "${found.found}" instead of "${found.expected}"`;
    case "unknown":
      return `not compared: ${found.reason}`;
  }
}

/** How many times as fast something is: `12×`, `1.2×`. */
export function factor(speedup: number): string {
  return speedup >= 10 ? `${speedup.toFixed(0)}×` : `${speedup.toFixed(1)}×`;
}

/** `0.0123`, `1.23`, `123`: three digits that say something. */
export function milliseconds(ms: number): string {
  const digits = ms > 0 ? Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(ms)))) : 3;
  return ms.toFixed(digits);
}
