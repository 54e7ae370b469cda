import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useLocation, useNavigate } from "react-router";

import { ApiError, query, send } from "../api/client";
import { useData } from "../api/data";
import { Failure } from "../parts/basics";

interface Provider {
  name: string;
  ssoUrl: string;
}

export function Login() {
  const master = useData<{ ssoProviders: Provider[] }>("master", []);
  const [error, setError] = useState<unknown>(null);
  const navigate = useNavigate();
  const client = useQueryClient();
  const { from = "/dashboard", ended } = (useLocation().state ?? {}) as { from?: string; ended?: string };
  const enter = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    try {
      await send("POST", "auth/login", { username: form.get("username"), password: form.get("password") });
      client.clear();
      navigate(from, { replace: true });
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <main className="login">
      <form className="card" onSubmit={enter}>
        <h1>Steadfast</h1>
        {ended && <p role="status">{ended}</p>}
        <label>
          User
          <input name="username" defaultValue="determined" autoComplete="username" required />
        </label>
        <label>
          Password
          <input name="password" type="password" autoComplete="current-password" />
        </label>
        <button
          type="submit"
          className="main"
          // biome-ignore lint/a11y/noAutofocus: most sign in as they are, with the return key
          autoFocus
        >
          Sign in
        </button>
        {(master.data?.ssoProviders ?? []).map((one) => (
          <p key={one.ssoUrl}>
            <a className="button" href={one.ssoUrl + query({ return: `/det${from}` })}>
              Sign in with {one.name}
            </a>
          </p>
        ))}
        {error instanceof ApiError && error.status < 500 ? (
          <div className="failure" role="alert">
            <p>{error.message}. An administrator can set another password: det user change-password.</p>
          </div>
        ) : error ? (
          <Failure error={error} />
        ) : null}
        {!master.data?.ssoProviders?.length && (
          <p className="soft">A fresh cluster has the users determined and admin, both without a password: just press Enter.</p>
        )}
      </form>
    </main>
  );
}
