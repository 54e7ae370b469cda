import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useLocation, useNavigate } from "react-router";

import { send } from "../api/client";
import { Failure } from "../parts/basics";

export function Login() {
  const [error, setError] = useState<unknown>(null);
  const navigate = useNavigate();
  const client = useQueryClient();
  const from = (useLocation().state as { from?: string } | null)?.from ?? "/dashboard";
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
        <label>
          User
          <input name="username" defaultValue="determined" autoComplete="username" required />
        </label>
        <label>
          Password
          <input name="password" type="password" autoComplete="current-password" />
        </label>
        <button type="submit" autoFocus>
          Sign in
        </button>
        {error ? <Failure error={error} /> : null}
        <p className="soft">A fresh cluster has the users determined and admin, both without a password.</p>
      </form>
    </main>
  );
}
