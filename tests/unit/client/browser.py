"""A browser, as far as who may see what depends on it."""

import http.client


class Browser:
    """Keeps cookies as browsers do: by host name, and without a look at ports."""

    def __init__(self):
        self.cookies = {}

    def get(self, url, *, method="GET", body=None, address="127.0.0.1", **headers):
        netloc, _, path = url.removeprefix("http://").partition("/")
        name, _, port = netloc.partition(":")
        connection = http.client.HTTPConnection(address, int(port), timeout=20)
        sent = {"Host": netloc, **{key.replace("_", "-"): value for key, value in headers.items()}}
        if name in self.cookies:
            sent["Cookie"] = self.cookies[name]
        connection.request(method, f"/{path}", body, sent)
        answer = connection.getresponse()
        text = answer.read()
        if cookie := answer.getheader("Set-Cookie"):
            self.cookies[name] = cookie.partition(";")[0]
        connection.close()
        return answer, text
