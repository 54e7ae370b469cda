/** Form fields: label above, hint below; an error replaces the hint. */

import { Search as Glass, TriangleAlert } from "lucide-react";
import { type InputHTMLAttributes, type ReactNode, type TextareaHTMLAttributes, useId } from "react";

interface Told {
  label: ReactNode;
  hint?: ReactNode;
  error?: ReactNode;
}
interface Wired {
  id: string;
  "aria-describedby": string | undefined;
  "aria-invalid": boolean;
}

/** Adds label, hint and error to a control, which receives three attributes. */
export function Field({ label, hint, error, children }: Told & { children: (wired: Wired) => ReactNode }) {
  const id = useId();
  const below = error || hint ? `${id}-hint` : undefined;
  return (
    <div className="fld">
      <label className="lbl" htmlFor={id}>
        {label}
      </label>
      {children({ id, "aria-describedby": below, "aria-invalid": Boolean(error) })}
      {error ? (
        <div id={below} className="hint err" role="alert">
          <TriangleAlert className="s" />
          <span>{error}</span>
        </div>
      ) : hint ? (
        <div id={below} className="hint">
          {hint}
        </div>
      ) : null}
    </div>
  );
}

type Own = "value" | "onChange";
interface Valued extends Told {
  value?: string;
  onChange?: (value: string) => void;
}

export const TextField = ({ label, hint, error, value, onChange, ...rest }: Valued & Omit<InputHTMLAttributes<HTMLInputElement>, Own>) => (
  <Field label={label} hint={hint} error={error}>
    {(wired) => (
      <input
        className="input"
        autoComplete="off"
        {...rest}
        {...wired}
        value={value}
        onChange={onChange && ((event) => onChange(event.target.value))}
      />
    )}
  </Field>
);

export const PasswordField = (props: Parameters<typeof TextField>[0]) => <TextField {...props} type="password" />;
export const NumberField = (props: Parameters<typeof TextField>[0]) => <TextField {...props} type="number" />;

export const TextArea = ({
  label,
  hint,
  error,
  value,
  onChange,
  ...rest
}: Valued & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, Own>) => (
  <Field label={label} hint={hint} error={error}>
    {(wired) => (
      <textarea
        className="input"
        rows={4}
        {...rest}
        {...wired}
        value={value}
        onChange={onChange && ((event) => onChange(event.target.value))}
      />
    )}
  </Field>
);

type Options<T extends string> = readonly (readonly [value: T, label: string])[];

/** The browser's own select, which works well on telephones and for screen readers. */
export function Select<T extends string>({
  label,
  value,
  options,
  onChange,
  hideLabel,
  small,
  above,
  name,
  hint,
}: {
  label: string;
  value?: T;
  options: Options<T>;
  onChange?: (value: T) => void;
  hideLabel?: boolean;
  small?: boolean;
  /** Puts the label above, as in a form. */
  above?: boolean;
  name?: string;
  hint?: ReactNode;
}) {
  const list = (extra: object) => (
    <select
      className={`sel ${small ? "s" : ""} ${above ? "wide" : ""}`}
      name={name}
      value={value}
      onChange={onChange && ((event) => onChange(event.target.value as T))}
      {...extra}
    >
      {options.map(([id, words]) => (
        <option key={id} value={id}>
          {words}
        </option>
      ))}
    </select>
  );
  if (above)
    return (
      <Field label={label} hint={hint}>
        {({ "aria-invalid": _, ...wired }) => list(wired)}
      </Field>
    );
  if (hideLabel) return list({ "aria-label": label, "data-tip": label });
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the select is inside
    <label className="sel-wrap">
      {label} {list({})}
    </label>
  );
}

interface Ticked {
  label: ReactNode;
  checked?: boolean;
  onChange?: (checked: boolean) => void;
  name?: string;
  disabled?: boolean;
}

export const Check = ({ label, onChange, ...rest }: Ticked) => (
  <label className="check">
    <input type="checkbox" className="box" {...rest} onChange={onChange && ((event) => onChange(event.target.checked))} />
    <span>{label}</span>
  </label>
);

export const Switch = ({ label, hint, onChange, ...rest }: Ticked & { hint?: ReactNode }) => (
  <div>
    <label className="check">
      <input
        type="checkbox"
        role="switch"
        aria-checked={rest.checked}
        className="switch"
        {...rest}
        onChange={onChange && ((event) => onChange(event.target.checked))}
      />
      <span>{label}</span>
    </label>
    {hint && <div className="hint">{hint}</div>}
  </div>
);

/** The search field of a page; `/` focuses it. */
export const Search = ({
  label,
  value,
  onChange,
  placeholder,
  small,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
  small?: boolean;
}) => (
  <span className={`field ${small ? "s" : ""}`}>
    <Glass className="s" />
    <input
      type="search"
      aria-label={label}
      value={value}
      placeholder={placeholder ?? label}
      onChange={(event) => onChange(event.target.value)}
      spellCheck={false}
      autoComplete="off"
    />
  </span>
);

export const Slider = ({
  label,
  value,
  min,
  max,
  step,
  onChange,
  format = String,
}: {
  label: string;
  value: number;
  min: number;
  max: number;
  step: number;
  onChange: (value: number) => void;
  format?: (value: number) => string;
}) => (
  <label className="sel-wrap">
    {label}
    <input type="range" value={value} min={min} max={max} step={step} onChange={(event) => onChange(Number(event.target.value))} />
    <output className="tn">{format(value)}</output>
  </label>
);
