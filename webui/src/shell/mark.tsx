/** The logo: a curve that levels out. */
export const Mark = () => (
  <svg viewBox="0 0 24 24" aria-hidden="true">
    <rect width="24" height="24" rx="6" fill="var(--accent)" />
    <path
      d="M5 17c3.4 0 3.9-3.2 5.3-6.2C11.500 8.300 13 7.500 15.600 7.500H19"
      fill="none"
      stroke="var(--on-accent)"
      strokeWidth="2"
      strokeLinecap="round"
    />
    <circle cx="19" cy="7.500" r="1.700" fill="var(--on-accent)" />
    <path d="M11.500 17H19" fill="none" stroke="var(--on-accent)" strokeWidth="2" strokeLinecap="round" opacity=".5" />
  </svg>
);
