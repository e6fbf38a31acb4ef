"""A module of the user's, beside the program."""


def loop():
    number = 0
    for step in range(10000):
        number += step
    return number
