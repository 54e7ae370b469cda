/** Data as YAML, for reading. */

const PLAIN = /^[A-Za-z_/.][\w ./@+-]*$/;
const WORDS = /^(true|false|null|yes|no|on|off|~)$/i;

function scalar(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value);
  return PLAIN.test(value) && !WORDS.test(value) && !/\s$|: /.test(value) ? value : JSON.stringify(value);
}

const isEmpty = (value: object) => Object.keys(value).length === 0;

function written(value: unknown, indent: string): string {
  if (value === null || typeof value !== "object") return ` ${scalar(value)}\n`;
  if (isEmpty(value)) return Array.isArray(value) ? " []\n" : " {}\n";
  if (Array.isArray(value)) return `\n${value.map((item) => `${indent}-${inItem(item, indent)}`).join("")}`;
  return `\n${fields(value, indent)}`;
}

const fields = (value: object, indent: string) =>
  Object.entries(value)
    .map(([name, inner]) => `${indent}${scalar(name)}:${written(inner, `${indent}  `)}`)
    .join("");

/** The first field of a map is on the same line as the dash. */
const inItem = (item: unknown, indent: string) =>
  item !== null && typeof item === "object" && !Array.isArray(item) && !isEmpty(item)
    ? ` ${fields(item, `${indent}  `).trimStart()}`
    : written(item, `${indent}  `);

/** JSON text becomes YAML; other text stays unchanged. */
export function asYaml(value: unknown): string {
  let data = value;
  if (typeof value === "string") {
    if (!value.trimStart().startsWith("{")) return value;
    try {
      data = JSON.parse(value);
    } catch {
      return value;
    }
  }
  return data !== null && typeof data === "object" && !isEmpty(data) && !Array.isArray(data) ? fields(data, "") : `${scalar(data)}\n`;
}
