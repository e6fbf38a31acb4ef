"""For gunicorn: an application that burns CPU time for each request, and says who it was."""

import os

from launched import burn


def application(environ, start_response):
    burn(0.1)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Connection", "close")])
    return [b"%d" % os.getpid()]
