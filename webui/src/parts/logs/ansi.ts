/** Text with ANSI escapes, as stretches with styles; everything that is no colour or weight is left out. */

export interface Stretch {
  text: string;
  /** Class names: `f1` is red text, `g4` blue ground, `bold` and so on. */
  style: string;
}

// Colours and weights, any other control sequence, links and titles, single-character escapes.
const ESCAPE = /\x1b\[([0-9;:]*)m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]?/g;
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/g;
const WEIGHTS: Record<number, string> = { 1: "bold", 2: "dim", 3: "italic", 4: "underline" };

/** A control character in sight: as its picture. */
const pictured = (text: string) =>
  text.replace(CONTROL, (one) => String.fromCharCode(one === "\x7f" ? 0x2421 : 0x2400 + one.charCodeAt(0)));

class Pen {
  private weights = new Set<string>();
  private ink = "";
  private ground = "";

  get style(): string {
    return [...this.weights, this.ink, this.ground].filter(Boolean).join(" ");
  }

  apply(codes: number[]) {
    for (let at = 0; at < codes.length; at++) {
      const code = codes[at]!;
      if (code === 0) this.reset();
      else if (WEIGHTS[code]) this.weights.add(WEIGHTS[code]);
      else if (code === 22) this.drop("bold", "dim");
      else if (code === 23 || code === 24) this.drop(WEIGHTS[code - 20]!);
      else if (code === 38 || code === 48) at = this.extended(codes, at);
      else this.plain(code);
    }
  }

  private reset() {
    this.weights.clear();
    this.ink = this.ground = "";
  }

  private drop(...names: string[]) {
    names.forEach((name) => this.weights.delete(name));
  }

  private plain(code: number) {
    if (code === 39) this.ink = "";
    else if (code === 49) this.ground = "";
    else if (code >= 30 && code <= 37) this.ink = `f${code - 30}`;
    else if (code >= 90 && code <= 97) this.ink = `f${code - 90}`;
    else if (code >= 40 && code <= 47) this.ground = `g${code - 40}`;
    else if (code >= 100 && code <= 107) this.ground = `g${code - 100}`;
  }

  /** Of 256 colours the first 16 are ours; others, and true colour, are left to the reader's theme. */
  private extended(codes: number[], at: number): number {
    if (codes[at + 1] !== 5) return at + (codes[at + 1] === 2 ? 4 : 1);
    const colour = codes[at + 2] ?? 0;
    const name = colour < 16 ? String(colour % 8) : "";
    if (codes[at] === 38) this.ink = name && `f${name}`;
    else this.ground = name && `g${name}`;
    return at + 2;
  }
}

export function stretches(text: string): Stretch[] {
  if (!text.includes("\x1b")) return [{ text: pictured(text), style: "" }];
  const found: Stretch[] = [];
  const pen = new Pen();
  let from = 0;
  const put = (to: number) => {
    if (to > from) found.push({ text: pictured(text.slice(from, to)), style: pen.style });
  };
  for (const code of text.matchAll(ESCAPE)) {
    put(code.index);
    from = code.index + code[0].length;
    if (code[1] !== undefined) pen.apply(code[1].split(/[;:]/).map(Number));
  }
  put(text.length);
  return found;
}

/** The text alone. */
export const plain = (text: string) =>
  stretches(text)
    .map((one) => one.text)
    .join("");
